"""ministack's DynamoDB engine in memory, with a journal that keeps every acknowledged write.

journalled.py   one request at a time, and each write journalled
engine.py       ministack's one module, and the items that a write touches
journal.py      the files: one line per write, and snapshots
expiry.py       deletes expired items
"""
