"""Why tasks miss the cache: what differs between the run summaries of two runs of turbo.

The package imports nothing else of Larder and reads no file, so the command line and functions can use it.

summaries.py   the parts of a summary that turbo hashes
hints.py       what only the repository knows about a difference
causes.py      the kinds of causes, and the advice for each
differences.py what differs between two lists, in a limited number of steps
comparison.py  the causes of the other hashes, and the tasks that each of them reaches
records.py     the JSON of a comparison
inputs.py      the inputs of a run in a report, without repetition
reasons.py     why a task was built although a run before had its hash
"""
