"""`make bench-cold`: how long every built function takes to start, to answer first and again, and in how much memory.

bench.py       the run: environments of all functions by turns, round after round
baselines/     what they are compared with, measured among them: a function that reads one item, one that does nothing
samples.py     the events of events/, filled in with people, keys and artifacts that exist
figures.py     what was measured, and what comes of it: medians, and ratios within a round
report.py      the table, JSON and docs/benchmarks-cold.md
"""
