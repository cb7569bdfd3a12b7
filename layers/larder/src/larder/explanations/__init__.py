"""Why the tasks of a run missed the cache: the run that it is compared with, the causes, and other reasons.

No function that builds wait for imports this package.

models.py     who asks, and what they get
baseline.py   the run that another one is compared with
classes.py    whether a commit made a difference
same_hash.py  why a task was built although a run before had its hash
service.py    explain a run when it is reported, and reports that are not stored
"""
