"""Why the tasks of a run missed the cache: the run that it is compared with, and the causes.

No function that builds wait for imports this package.

baseline.py  the run that another one is compared with
classes.py   whether a commit made a difference
models.py    who asks, and what they get
service.py   explain a run when it is reported, and reports that are not stored
"""
