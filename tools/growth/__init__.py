"""`make growth`: estimate which limit a large company reaches first, and the monthly cost.

limits.toml   the limits, and how much of each a request takes
loads.py      divides the two
command.py    the command, and the table it prints
"""
