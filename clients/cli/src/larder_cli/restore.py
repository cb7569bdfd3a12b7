"""`larder restore-table`: copy the items of a recovered table into the stack's table."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import click

from larder.settings import settings
from larder_cli.commands import TargetCommand, examples, json_option
from larder_cli.output import print_record
from larder_cli.progress import counting

TABLES = ("identity", "api-keys", "teams", "audit", "usage")
"""The artifacts table is not among them, because `rebuild-index` recreates it from the bucket."""

_BATCH = 25
_ATTEMPTS = 10


@click.command(
    "restore-table",
    cls=TargetCommand,
    epilog=examples("larder --stack larder-prod restore-table teams --from larder-teams-recovered"),
)
@click.argument("table", metavar="TABLE", type=click.Choice(TABLES))
@click.option(
    "--from",
    "source",
    metavar="NAME",
    required=True,
    help="The table that point-in-time recovery created, in the same account and region.",
)
@json_option
def restore_table(table: str, source: str, as_json: bool) -> None:
    """Copy a recovered table into the stack's TABLE.

    An item of the recovered table replaces the stack's item with the same key. Items added since then stay. You can
    run the command again.
    """
    target: str = getattr(settings(), f"{table.replace('-', '_')}_table")
    if source == target:
        raise click.UsageError("--from names the stack's own table: name the recovered one")
    done = 0
    with counting("items") as count:
        for batch in _batches(_items(source)):
            _put(target, batch)
            done += len(batch)
            count(done)
    print_record({"items": done}, as_json=as_json)


def _items(table: str) -> Iterator[dict[str, Any]]:
    from larder import aws

    pages = aws.dynamodb().get_paginator("scan").paginate(TableName=table, ConsistentRead=True)
    try:
        for page in pages:
            yield from page["Items"]
    except aws.ClientError as error:
        # For other commands, `explanation` blames a missing table of the deployment.
        if aws.error_code(error) != "ResourceNotFoundException":
            raise
        raise click.ClickException(
            f"there is no table {table}: `aws dynamodb list-tables` lists them"
        ) from error


def _batches(items: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    rest = iter(items)
    while batch := list(islice(rest, _BATCH)):
        yield batch


def _put(table: str, items: Sequence[dict[str, Any]]) -> None:
    from larder import aws
    from larder.concurrency import attempts
    from larder.errors import TryAgain

    requests: Any = {table: [{"PutRequest": {"Item": item}} for item in items]}
    for _ in attempts(_ATTEMPTS):
        requests = aws.dynamodb().batch_write_item(RequestItems=requests).get("UnprocessedItems")
        if not requests:
            return
    raise TryAgain
