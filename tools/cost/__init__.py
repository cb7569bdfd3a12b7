"""`make cost`: estimate the monthly cost from Amazon's published prices.

prices.toml   the prices, and how much of each a request uses
bill.py       multiplies the two
command.py    the command, and the table it prints
"""
