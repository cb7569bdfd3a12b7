"""The functions: processes that import them and serve one event at a time each, as Lambda does.

pool.py       in the parent: hands events to idle workers, replaces the dead, ends the late
worker.py     the process itself
context.py    the context object that a handler gets
messages.py   what goes over the socket between the two
"""
