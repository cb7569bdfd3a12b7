"""The functions as deployed: the output of `make build`, under AWS's own runtime interface client.

pool.py          passes events to idle environments, starts new ones, ends late ones
environment.py   one environment: a process of one function, its Runtime API and its output
memory.py        measures its memory, and kills it beyond its limit
api.py           the Runtime API (2018-06-01), from which the client gets events and to which it sends results
http.py          the HTTP server for it
built.py         the build, and the parts of Lambda that it needs
bootstrap.py     the start of the process, instead of Lambda's /var/runtime/bootstrap.py
"""
