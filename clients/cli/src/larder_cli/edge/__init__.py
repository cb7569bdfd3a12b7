"""`larder edge`: prove that the edge of this deployment works, and switch it (docs/edge.md).

command.py   the commands
switch.py    the key in use, old keys, and when they can be deleted
store.py     the key-value store that the edge reads
probes.py    what is checked before the edge is used
"""
