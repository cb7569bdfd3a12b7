"""Refuse a part of DynamoDB's requests as AWS does: throttled keys and writes, and transactions in each other's way."""

import asyncio
import contextlib
import json
from pathlib import Path
from random import Random
from typing import Any

_ERROR = "com.amazonaws.dynamodb.v20120810#"
_THROTTLED = "ProvisionedThroughputExceededException"
_WRITES = {"PutItem", "UpdateItem", "DeleteItem"}


class Refusals:
    """What `file` says now, in JSON: the `share` of keys and writes that are refused, from 0 to 1, and `shut`, tables
    of which no item can be read.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._source = Random(7)

    async def connect(self, port: int, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        engine, to_engine = await asyncio.open_connection("127.0.0.1", port)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head, body = await _message(client)
                operation = head.partition(b"DynamoDB_20120810.")[2].partition(b"\r\n")[0].decode()
                asked = json.loads(body or b"{}")
                refused = self._refused_keys(asked) if operation == "BatchGetItem" else {}
                refusal = self._refusal(operation, asked)
                if refusal is None:
                    to_engine.write(_with_body(head, json.dumps(asked).encode() if refused else body))
                    status, reply = await _message(engine)
                    if refused:
                        reply = json.dumps({**json.loads(reply), "UnprocessedKeys": refused}).encode()
                    to_client.write(_with_body(status, reply))
                else:
                    to_client.write(_with_body(b"HTTP/1.1 400 Bad Request\r\n\r\n", json.dumps(refusal).encode()))
                await to_client.drain()
        to_client.close()
        to_engine.close()

    def _refused_keys(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Take the refused keys out of a BatchGetItem."""
        now, refused = json.loads(self._file.read_text()), {}
        for table, of in [*asked["RequestItems"].items()]:
            is_shut = table in now["shut"]
            taken = [key for key in of["Keys"] if not is_shut and self._source.random() >= now["share"]]
            rest = [key for key in of["Keys"] if key not in taken]
            if rest:
                refused[table] = {**of, "Keys": rest}
            asked["RequestItems"][table] = {**of, "Keys": taken}
            if not taken:
                del asked["RequestItems"][table]
        return refused

    def _refusal(self, operation: str, asked: dict[str, Any]) -> dict[str, Any] | None:
        if operation == "BatchGetItem":
            return None if asked["RequestItems"] else {"__type": f"{_ERROR}{_THROTTLED}", "message": "Refused"}
        if self._source.random() >= json.loads(self._file.read_text())["share"]:
            return None
        if operation in _WRITES:
            code = self._source.choice([_THROTTLED, "TransactionConflictException"])
            return {"__type": f"{_ERROR}{code}", "message": "Refused"}
        if operation != "TransactWriteItems":
            return None
        reasons = [{"Code": "None"} for _ in asked["TransactItems"]]
        self._source.choice(reasons)["Code"] = self._source.choice(["TransactionConflict", "ThrottlingError"])
        error = {"__type": f"{_ERROR}TransactionCanceledException", "Message": "Refused"}
        return {**error, "CancellationReasons": reasons}


async def _message(source: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """The head and the body of a request or a reply."""
    head = await source.readuntil(b"\r\n\r\n")
    lengths = [int(line[15:]) for line in head.lower().splitlines() if line.startswith(b"content-length:")]
    return head, await source.readexactly(sum(lengths))


def _with_body(head: bytes, body: bytes) -> bytes:
    kept = [
        line
        for line in head.split(b"\r\n")
        if line and not line.lower().startswith((b"content-length", b"x-amz-crc32"))
    ]
    return b"\r\n".join([*kept, b"content-length: %d" % len(body), b"", body])
