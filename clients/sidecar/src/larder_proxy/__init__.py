"""A sidecar that brings Larder to build tools: it speaks their protocols on loopback.

The package imports nothing outside the standard library and runs on Python 3.9, so `larder.pyz` needs no installation.

clients.py      the paths of each tool, and what each can bear as an answer
credentials.py  the token: a key, that of a CI job, or that of `turbo login`
listener.py     where the tools find a sidecar
spool.py        bodies on their way
messages.py     HTTP/1.1, as tools and Larder speak it
connections.py  kept connections, and the certificates of companies
address.py      the parts of an address
proxies.py      which requests take a proxy
tls.py          TLS inside the TLS of a proxy
upstream.py     the requests to Larder and its storage, with retries
transfers.py    what these requests give back
places.py       how many requests run at a time
memory.py       what is known of each entry
prefetch.py     what turbo is about to ask for
lists.py        which artifacts these are
files.py        files that only this user can read
cache.py        lookups, and uploads, which run behind the build
server.py       the listener
turbo.py        the remote cache API of turbo, on the listener
reports.py      the runs that Nx and turbo describe
sidecar.py      all of it, with its start and end
run.py          `larder run`
process.py      `larder proxy`
command.py      both, in larder.pyz
output.py       the lines that people see
"""

__version__ = "1"
