"""`make bench`: compare Larder with similar servers, on one machine, in one run.

servers.py        Larder's local server and the peers, started and ended; what memory their processes take
load.py           the generator of load, the same for every server (peers/load.mjs)
cases.py          what is asked of the servers
turbo_builds.py   the build client itself, against each cache
handler_cpu.py    CPU time of a handler call compared with the bare calls to AWS, in this process
memory.py         the memory of the local server while large artifacts pass through it
figures.py        what comes of the measurements
report.py         the page of the documentation
plots.py          its figures
peers/            what comes from npm, in the versions of its lock file
"""
