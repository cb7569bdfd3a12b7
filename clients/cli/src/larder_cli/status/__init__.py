"""`larder status`: whether a deployed stack works, and what to do if it does not. It only reads.

command.py     the options, the run and the output
rows.py        the levels, and how a check that fails becomes a note
deployed.py    the stack that the checks look at
permissions.py the calls, and what allows them
metrics.py     figures of CloudWatch
code.py, protection.py, alarms.py, background.py, capacity.py, drift.py   the checks
"""
