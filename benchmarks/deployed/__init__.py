"""`make bench-deployed`: restores by real turbo over a model of the network and of AWS (docs/benchmarks-deployed.md).

repositories.py   repositories whose builds take no time
restores.py       turbo's restores with each way in turn
report.py         the page
"""
