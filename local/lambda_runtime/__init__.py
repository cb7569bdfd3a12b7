"""The functions as they are deployed: what `make build` made, under AWS's own runtime interface client.

pool.py          hands events to idle environments, starts new ones, ends the late
environment.py   one of them: a process of one function, its Runtime API and its output
memory.py        how much it holds, and that it is killed beyond its limit
api.py           the Runtime API (2018-06-01), which the client asks for events and tells the outcomes
http.py          the HTTP connections that it is spoken over
artifacts.py     what was built, and the parts of Lambda that stand around it
bootstrap.py     the process's first lines, in place of Lambda's /var/runtime/bootstrap.py
"""
