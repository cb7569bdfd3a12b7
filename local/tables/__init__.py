"""The tables: DynamoDB as a process of the local cloud, in one of two engines.

__main__.py      `python -m local.tables`, started by local/serve.py
front.py         HTTP, signatures, and which operations are let in: the same before both engines
ministack/       ministack in memory, behind a journal that keeps every acknowledged write
dynamodb_local/  AWS's DynamoDB Local: ENGINE=dynamodb-local
"""
