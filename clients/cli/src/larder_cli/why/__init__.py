"""`larder why`: why tasks miss the cache, from the run summaries of turbo. The comparison is larder.why.

command.py     the options and the run
summaries.py   the summaries: from a file, the newest of the repository, or a dry run
checkout.py    what git knows about a run, and about the differences of two
lockfiles.py   the external packages of each workspace, from the lockfiles of npm, pnpm, yarn and bun
deployment.py  the questions to a deployment
completion.py  what git knows about the causes that a deployment has found
redaction.py   labels in place of names
report.py      the output for people: text and Markdown
git.py         how git is run
fix.py         --fix: the proof of edits
recipes.py     which cause has which edit
edits.py       edits of files that leave everything else as it is
scratch.py     a copy of the checkout, in which turbo computes hashes
history.py     what became of a hash, as text
"""
