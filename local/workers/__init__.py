"""The functions: processes that import them and serve one event at a time each, as Lambda does.

pool.py         in the parent: passes events to idle workers, replaces dead ones, ends late ones
forks.py        in the parent: starts and ends workers through the fork server
fork_server.py  the process that imports the functions, and forks the workers
worker.py       the worker process
context.py      the context object for a handler
messages.py     the messages on the socket between them
"""
