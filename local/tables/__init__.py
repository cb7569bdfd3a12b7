"""The tables: DynamoDB as a process of the local cloud.

__main__.py      `python -m local.tables`, started by local/serve.py
front.py         HTTP, signatures and the supported operations
ministack/       ministack in memory, with a journal that keeps every acknowledged write
"""
