"""Why tasks miss the cache: reported runs, and what differs between two of them.

No function that builds wait for imports this package. The modules that compare, the first eight, need no deployment,
so that the command line uses them too.

summaries.py   the parts of a summary that turbo hashes
hints.py       what only the repository knows about a difference
causes.py      the kinds of causes, and the advice for each
differences.py what differs between two lists, in a limited number of steps
comparison.py  the causes of the other hashes, and the tasks that each of them reaches
reasons.py     why a task was built although a run before had its hash
records.py     the JSON of a comparison
inputs.py      the inputs of a run in a report, without repetition

models.py      runs, their figures, who asks, and what they get
codes.py       codes in place of turbo's digests of values
repository.py  runs in the usage table
storage.py     inputs of runs in the bucket
figures.py     the causes of many runs
history.py     the hashes that a task had
runs.py        read and delete runs
baseline.py    the run that another one is compared with
same_hash.py   looks for the reason in the state of the cache
service.py     store a reported run and explain it, and reports that are not stored
"""
