"""The tables: ministack's DynamoDB engine in memory, behind a journal that keeps every acknowledged write.

front.py        HTTP, signatures, which operations are let in: the same before every engine
journalled.py   one request at a time, and each write journalled
engine.py       ministack's one module, and the items that a write touches
journal.py      the files: one line a write, a snapshot now and then
expiry.py       removes items past their time to live
__main__.py     `python -m local.dynamodb`, started by local/serve.py; runs local/dynamodb_local too
"""
