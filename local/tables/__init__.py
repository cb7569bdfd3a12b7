"""The tables: DynamoDB as a process of the local cloud, with one of two engines.

__main__.py      `python -m local.tables`, started by local/serve.py
front.py         HTTP, signatures and the supported operations, for both engines
ministack/       ministack in memory, with a journal that keeps every acknowledged write
dynamodb_local/  AWS's DynamoDB Local: ENGINE=dynamodb-local
"""
