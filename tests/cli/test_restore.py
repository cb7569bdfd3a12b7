"""`larder restore-table`: what a recovered table holds stands in the stack's again."""

from typing import Any

import pytest

from larder import aws, clock
from larder.accounts.service import create_user
from larder.errors import TryAgain
from larder.settings import settings
from larder.teams.service import create_team, find_team
from larder_cli.restore import TABLES, restore_table
from local.template import load_template
from tests.faults import answering, reply

from .conftest import Larder

RECOVERED = "recovered"


def copy_of(logical_id: str) -> str:
    """What point-in-time recovery makes: a table of another name with the items of a moment."""
    (table,) = (one for one in load_template(environ={}).tables if one.logical_id == logical_id)
    aws.dynamodb().create_table(**{**table.create_table, "TableName": RECOVERED})
    for item in items(table.name):
        aws.dynamodb().put_item(TableName=RECOVERED, Item=item)
    return table.name


def items(table: str) -> list[Any]:
    return list(aws.dynamodb().scan(TableName=table)["Items"])


def test_what_was_deleted_and_changed_is_as_it_was_and_what_is_new_stays(larder: Larder) -> None:
    now = clock.now()
    ada = create_user("ada@acme.example", "Ada", now=now)
    teams = [
        create_team(f"Team {n}", f"team-{n}", owner_user_id=ada.id, now=now) for n in range(30)
    ]
    name = copy_of("TeamsTable")
    before = items(name)
    for item in before[:40]:
        aws.dynamodb().delete_item(TableName=name, Key={key: item[key] for key in ("pk", "sk")})
    aws.dynamodb().put_item(TableName=name, Item={**before[50], "name": {"S": "Renamed"}})
    later = create_team("Later", "later", owner_user_id=ada.id, now=now)
    assert larder.json("restore-table", "teams", "--from", RECOVERED) == {"items": len(before)}
    assert [find_team(team.slug) for team in teams] == teams
    assert find_team("later") == later


def test_what_dynamodb_has_no_time_for_is_put_again(aws_in_memory: None) -> None:
    # Without the command's own beginning, which makes clients that no fault is set up on.
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
        for table in load_template(environ={}).tables
        if table.logical_id.removesuffix("Table").lower()
        in {one.replace("-", "") for one in TABLES}
    }
    assert protected >= {"IdentityTable", "ApiKeysTable", "TeamsTable", "AuditTable"}


def test_it_refuses_its_own_table_and_tells_of_one_that_is_not_there(larder: Larder) -> None:
    own = settings().teams_table
    assert "the stack's own" in larder.refusal("restore-table", "teams", "--from", own, status=2)
    refusal = larder.refusal("restore-table", "teams", "--from", "of-nobody")
    assert refusal == "there is no table of-nobody: `aws dynamodb list-tables` names them"


def test_a_table_of_the_deployment_that_is_gone_is_not_taken_for_the_source(larder: Larder) -> None:
    create_user("ada@acme.example", "Ada", now=clock.now())
    name = copy_of("IdentityTable")
    aws.dynamodb().delete_table(TableName=name)
    refusal = larder.refusal("restore-table", "identity", "--from", RECOVERED)
    assert "a table, the bucket or the signing secret of this Larder is gone" in refusal


def test_the_index_of_artifacts_is_not_restored_but_rebuilt(larder: Larder) -> None:
    refusal = larder.refusal("restore-table", "artifacts", "--from", RECOVERED, status=2)
    assert "is not one of" in refusal


@pytest.mark.parametrize("table", TABLES)
def test_the_names_are_options_of_the_deployment(table: str, larder: Larder) -> None:
    assert getattr(settings(), f"{table.replace('-', '_')}_table")
