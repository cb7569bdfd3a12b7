"""The tables: ministack's DynamoDB engine in memory, behind a journal that keeps every acknowledged write.

server.py       the process: HTTP, signatures, which operations are let in
engine.py       ministack's one module, and the items that a write touches
journal.py      the files: one line a write, a snapshot now and then
expiry.py       removes items past their time to live
__main__.py     `python -m local.dynamodb`, started by local/serve.py
"""
