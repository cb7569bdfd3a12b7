"""`make bench-deployed`: restores by real turbo over a model of the network and of AWS (docs/benchmarks-deployed.md).

repositories.py   repositories whose builds take no time
restorer.py       turbo in such a repository, restoring in one way
restores.py       restores with each way in turn
checks.py         the model against a real server, the size of functions, many laptops at once
report.py         the page
"""
