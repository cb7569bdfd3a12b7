"""`make bench-cold`: measure the cold start, first call, warm calls and memory of every built function.

bench.py       the run: environments of all functions in turn, round after round
baselines/     the functions for comparison: one reads one item, one does nothing
tls.py         TLS in front of the local services, as AWS has it
samples.py     the events of events/, filled in with existing users, keys and artifacts
figures.py     the measurements, their medians and their ratios to the baseline
report.py      the table, JSON and docs/benchmarks-cold.md
"""
