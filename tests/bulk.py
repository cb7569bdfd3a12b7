"""Many items at once: a transaction of moto copies its tables."""

from collections.abc import Iterable
from itertools import islice
from typing import Any

from larder import aws


def put_all(table: str, items: Iterable[aws.Item]) -> None:
    left = iter(items)
    while some := list(islice(left, 25)):
        puts: list[Any] = [{"PutRequest": {"Item": aws.serialize(item)}} for item in some]
        reply = aws.dynamodb().batch_write_item(RequestItems={table: puts})
        assert not reply["UnprocessedItems"]
