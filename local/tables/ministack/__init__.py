"""ministack's DynamoDB engine in memory, behind a journal that keeps every acknowledged write.

journalled.py   one request at a time, and each write journalled
engine.py       ministack's one module, and the items that a write touches
journal.py      the files: one line a write, a snapshot now and then
expiry.py       removes items past their time to live
"""
