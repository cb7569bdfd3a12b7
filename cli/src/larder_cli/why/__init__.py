"""`larder why`: why tasks miss the cache, from the run summaries of turbo. The comparison is larder.misses.

command.py    the options and the run
summaries.py  the summaries: from a file, the newest of the repository, or a dry run
checkout.py   what git knows about the differences
lockfiles.py  the external packages of each workspace, from the lockfiles of npm, pnpm, yarn and bun
redaction.py  labels in place of names
report.py     the output: text, Markdown and JSON
"""
