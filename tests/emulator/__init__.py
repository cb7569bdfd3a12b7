"""ministack as a process that checks permissions, for `make deployed`.

process.py         starts it and connects clients
server.py          the process
aws_behaviour.py   behaviour of AWS that ministack lacks
"""
