"""`python -m tests.dynamodb_local PORT`: the tables of a local cloud, in the engine at this port.

A local cloud starts it in place of `local.tables`, with the same arguments (TABLES). It creates the tables, which the
engine keeps for the access key id of the local cloud, and passes the bytes of each connection on. With
`--refusals FILE`, it refuses what the file says.
"""

import argparse
import asyncio
import contextlib
import socket
from functools import partial
from pathlib import Path
from typing import Any

import boto3

from local.child_processes import end_with_parent, leave
from local.template import REGION, load_template
from tests.dynamodb_local.refusals import Refusals


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.dynamodb_local", description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("--refusals", type=Path)
    parser.add_argument("--socket", type=int, required=True)
    parser.add_argument("--template", type=Path, required=True)
    arguments, _ = parser.parse_known_args()
    end_with_parent()
    _create_tables(arguments.template, arguments.port)
    connect = Refusals(arguments.refusals).connect if arguments.refusals else _connect
    asyncio.run(_serve(socket.socket(fileno=arguments.socket), partial(connect, arguments.port)))
    return 0


def _create_tables(template: Path, port: int) -> None:
    dynamodb = boto3.client("dynamodb", endpoint_url=f"http://127.0.0.1:{port}", region_name=REGION)
    there = dynamodb.list_tables()["TableNames"]
    for table in load_template(template).tables:
        if table.name in there:
            continue
        dynamodb.create_table(**table.create_table)
        if table.ttl_attribute:
            dynamodb.update_time_to_live(
                TableName=table.name, TimeToLiveSpecification={"AttributeName": table.ttl_attribute, "Enabled": True}
            )


async def _serve(listener: socket.socket, connect: Any) -> None:
    server = await asyncio.start_server(connect, sock=listener)
    await server.serve_forever()


async def _connect(port: int, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
    engine, to_engine = await asyncio.open_connection("127.0.0.1", port)
    await asyncio.gather(_pass_on(client, to_engine), _pass_on(engine, to_client))


async def _pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await source.read(2**16):
            target.write(data)
            await target.drain()
    target.close()


if __name__ == "__main__":
    leave(main())
