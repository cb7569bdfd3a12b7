"""`larder smoke`: check a live deployment over the network, as its clients use it.

command.py   the options, the run and the output
checks.py    the checks, in order
advice.py    what to do about an unexpected response
times.py     how long each kind of request takes
log_lines.py the deployment's log lines of the requests
"""
