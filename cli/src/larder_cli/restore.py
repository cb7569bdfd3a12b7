"""`larder restore-table`: put what a recovered table holds back into the stack's."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import click

from larder.settings import settings
from larder_cli.commands import TargetCommand, examples, json_option
from larder_cli.output import print_record
from larder_cli.progress import counting

TABLES = ("identity", "api-keys", "teams", "audit", "usage")
"""Those whose loss would hurt. The index of artifacts is made from the bucket."""

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
    """Put what a recovered table holds back.

    Every item of the recovered table takes the place of the stack's. What has been added since stays. Can be run again.
    """
    target: str = getattr(settings(), f"{table.replace('-', '_')}_table")
    if source == target:
        raise click.UsageError("the recovered table is the stack's own")
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
        # Elsewhere it means that a table of the deployment is gone.
        if aws.error_code(error) != "ResourceNotFoundException":
            raise
        raise click.ClickException(
            f"there is no table {table}: `aws dynamodb list-tables` names them"
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
