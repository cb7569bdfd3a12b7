"""`larder restore-table`."""

from typing import Any

import pytest

from larder import aws, clock
from larder.accounts.service import create_user
from larder.errors import TryAgain
from larder.settings import settings
from larder.teams.teams import create_team, find_team
from larder_cli.restore import TABLES, restore_table
from tests.default_template import template
from tests.faults import answering, reply

from .conftest import Larder

RECOVERED = "recovered"


def copy_of(logical_id: str) -> str:
    """Create a copy of a table under another name, as point-in-time recovery does."""
    (table,) = (one for one in template().tables if one.logical_id == logical_id)
    aws.dynamodb().create_table(**{**table.create_table, "TableName": RECOVERED})
    for item in items(table.name):
        aws.dynamodb().put_item(TableName=RECOVERED, Item=item)
    return table.name


def items(table: str) -> list[Any]:
    return list(aws.dynamodb().scan(TableName=table)["Items"])


def test_restore_brings_back_deleted_and_changed_items_and_keeps_new_ones(larder: Larder) -> None:
    now = clock.now()
    ada = create_user("ada@acme.example", "Ada", now=now)
    teams = [create_team(f"Team {n}", f"team-{n}", owner_user_id=ada.id, now=now) for n in range(30)]
    name = copy_of("TeamsTable")
    before = items(name)
    for item in before[:40]:
        aws.dynamodb().delete_item(TableName=name, Key={key: item[key] for key in ("pk", "sk")})
    aws.dynamodb().put_item(TableName=name, Item={**before[50], "name": {"S": "Renamed"}})
    later = create_team("Later", "later", owner_user_id=ada.id, now=now)
    assert larder.json("restore-table", "teams", "--from", RECOVERED) == {"items": len(before)}
    assert [find_team(team.slug) for team in teams] == teams
    assert find_team("later") == later


def test_unprocessed_items_are_written_again(aws_in_memory: None) -> None:
    # Call the callback directly: running the command would create new AWS clients without the faults.
    assert restore_table.callback is not None
    create_user("ada@acme.example", "Ada", now=clock.now())
    name = copy_of("IdentityTable")
    before = items(name)
    busy = reply({"UnprocessedItems": {name: [{"PutRequest": {"Item": item}} for item in before]}})
    for item in before:
        aws.dynamodb().delete_item(TableName=name, Key={key: item[key] for key in ("pk", "sk")})
    with answering("dynamodb", "BatchWriteItem", busy, times=2):
        restore_table.callback(table="identity", source=RECOVERED, as_json=True)
    assert items(name) == before
    with answering("dynamodb", "BatchWriteItem", busy), pytest.raises(TryAgain):
        restore_table.callback(table="identity", source=RECOVERED, as_json=True)


def test_every_table_with_recovery_can_be_restored() -> None:
    protected = {
        table.logical_id
        for table in template().tables
        if table.logical_id.removesuffix("Table").lower() in {one.replace("-", "") for one in TABLES}
    }
    assert protected >= {"IdentityTable", "ApiKeysTable", "TeamsTable", "AuditTable"}


def test_it_rejects_its_own_table_and_reports_a_missing_one(larder: Larder) -> None:
    own = settings().teams_table
    assert "the stack's own table" in larder.refusal("restore-table", "teams", "--from", own, status=2)
    refusal = larder.refusal("restore-table", "teams", "--from", "missing")
    assert refusal == "there is no table missing: `aws dynamodb list-tables` lists them"


def test_a_missing_table_of_the_deployment_is_not_blamed_on_the_source(larder: Larder) -> None:
    create_user("ada@acme.example", "Ada", now=clock.now())
    name = copy_of("IdentityTable")
    aws.dynamodb().delete_table(TableName=name)
    refusal = larder.refusal("restore-table", "identity", "--from", RECOVERED)
    assert "a table, the bucket or the signing secret does not exist" in refusal


def test_the_index_of_artifacts_is_not_restored_but_rebuilt(larder: Larder) -> None:
    refusal = larder.refusal("restore-table", "artifacts", "--from", RECOVERED, status=2)
    assert "is not one of" in refusal


@pytest.mark.parametrize("table", TABLES)
def test_the_table_names_are_settings(table: str, larder: Larder) -> None:
    assert getattr(settings(), f"{table.replace('-', '_')}_table")
