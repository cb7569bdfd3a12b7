"""`larder doctor`: find what keeps the artifacts of a repository out of the cache.

command.py     the options, the run and the output
findings.py    what it can find: the rules, and how bad a breach is
repository.py  the root, the version of turbo, and the size of its artifacts
here.py        the checks that need no network
deployment.py  the checks that ask the deployment
"""
