"""`make growth`: which limit a large company reaches first, and what it pays.

limits.toml   the limits, and how much of each a request takes
loads.py      divides the two
command.py    the command, and the table it prints
"""
