"""`make bench`: compare Larder with similar servers, on one machine, in one run.

servers.py        starts and stops Larder's local server and the peers, and reads their CPU time and memory
load.py           the load generator, the same for every server (peers/load.mjs)
cases.py          the requests to the servers
handler_cpu.py    CPU time of a handler call compared with its calls to AWS alone, in this process
memory.py         the memory of the local server while it stores and returns large artifacts, for `make proofs`
figures.py        ratios and percentiles from the measurements
report.py         the page of the documentation
peers/            the packages from npm, in the versions of the lock file

cold/             `make bench-cold`: cold starts of every built function
deployed/         `make bench-deployed`: restores over a model of the network and of AWS
"""
