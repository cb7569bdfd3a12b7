"""`larder keys`: what it makes is what the handlers take."""

from datetime import datetime, timedelta

import pytest

from larder import aws, clock
from larder.accounts.service import create_user
from larder.settings import settings
from tests.requests import Cloud, Sender

from .conftest import Larder

ADA = ("--user", "ada@acme.example")


def test_a_key_stores_and_restores_an_artifact(larder: Larder, cloud: Cloud) -> None:
    made = larder.json("keys", "create", *ADA, "--team", "acme", "--name", "laptop")
    send = Sender(made["key"], slug="acme")
    assert send("PUT", "/v8/artifacts/abc", body=b"bytes").status == 202
    assert send("GET", "/v8/artifacts/abc").body == b"bytes"


def test_the_json_tells_the_key_and_its_properties(larder: Larder, cloud: Cloud) -> None:
    made = larder.json(
        *("keys", "create", *ADA, "--team", cloud.team.id, "--name", "ci", "--prefix", "acme_"),
        *("--expires-in", "30d", "--permissions", "artifacts=read"),
    )
    assert made["key"].startswith("acme_")
    assert made["key"].startswith(made["start"])
    assert (made["team"], made["team_id"], made["name"]) == ("acme", cloud.team.id, "ci")
    assert made["permissions"] == {"artifacts": ["read"]}
    lives = datetime.fromisoformat(made["expires_at"]) - datetime.fromisoformat(made["created_at"])
    assert lives == timedelta(days=30)


def test_the_key_is_shown_once_and_stored_nowhere(larder: Larder, cloud: Cloud) -> None:
    result = larder("keys", "create", *ADA, "--name", "shown")
    key = result.stdout.splitlines()[-1]
    assert len(key) == 64
    assert result.stdout.count(key) == 1
    assert result.stderr == ""
    assert key not in larder("keys", "list", *ADA).stdout
    stored = aws.dynamodb().scan(TableName=settings().api_keys_table)["Items"]
    assert key not in str(stored)


def test_a_read_only_key_does_not_write(larder: Larder, cloud: Cloud) -> None:
    made = larder.json("keys", "create", *ADA, "--permissions", "artifacts=read")
    send = Sender(made["key"], slug="acme")
    assert send("PUT", "/v8/artifacts/abc", body=b"bytes").code == "read_only"
    assert send("GET", "/v8/artifacts/abc").status == 404


def test_a_key_without_a_team_acts_for_all_teams_of_its_user(larder: Larder, cloud: Cloud) -> None:
    made = larder.json("keys", "create", *ADA)
    assert (made["team"], made["team_id"]) == (None, None)
    assert Sender(made["key"])("GET", "/v8/artifacts/status").status == 200
    assert Sender(made["key"], slug="acme")("GET", "/v8/artifacts/status").status == 200


def test_permissions_of_several_resources_add_up(larder: Larder, cloud: Cloud) -> None:
    made = larder.json(
        *("keys", "create", *ADA, "--permissions", "artifacts=read, write"),
        *("--permissions", "reports=read"),
    )
    assert made["permissions"] == {"artifacts": ["read", "write"], "reports": ["read"]}


def test_a_team_key_needs_a_member(larder: Larder, cloud: Cloud) -> None:
    create_user("bob@acme.example", "Bob", now=clock.now())
    refusal = larder.refusal("keys", "create", "--user", "bob@acme.example", "--team", "acme")
    assert "bob@acme.example is not a member of acme" in refusal
    assert "larder teams add-member acme bob@acme.example" in refusal
    assert larder.json("keys", "list", "--user", "bob@acme.example") == []


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--team", "nobody"), "there is no team nobody"),
        (("--name", "x" * 33), "name: must hold 1 to 32 characters"),
        (("--prefix", "a b"), "prefix: must be"),
        (("--permissions", "art facts=read"), "permissions: must map"),
    ],
)
def test_create_refuses_what_the_rules_forbid(
    larder: Larder, cloud: Cloud, arguments: tuple[str, ...], expected: str
) -> None:
    assert expected in larder.refusal("keys", "create", *ADA, *arguments)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--expires-in", "soon"), "is no time"),
        (("--expires-in", "0d"), "out of bounds"),
        (("--expires-in", "99999w"), "out of bounds"),
        (("--permissions", "artifacts"), "is no permission"),
        (("--permissions", "artifacts=read,,write"), "is no permission"),
    ],
)
def test_create_refuses_what_it_cannot_read(
    larder: Larder, cloud: Cloud, arguments: tuple[str, ...], expected: str
) -> None:
    assert expected in larder.refusal("keys", "create", *ADA, *arguments, status=2)


def test_list_names_the_keys_of_a_user_with_their_teams(larder: Larder, cloud: Cloud) -> None:
    larder("keys", "create", *ADA, "--name", "own")
    listed = larder.json("keys", "list", *ADA)
    assert [(key["name"], key["team"]) for key in listed] == [("ci", "acme"), ("own", None)]
    assert all("key" not in key and "key_hash" not in key for key in listed)
    shown = larder("keys", "list", *ADA).stdout
    assert cloud.key.id in shown
    assert "artifacts=read,write" in shown


def test_list_tells_when_a_key_was_used(larder: Larder, cloud: Cloud) -> None:
    assert larder.json("keys", "list", *ADA)[0]["last_request_at"] is None
    cloud.send("GET", "/v8/artifacts/status")
    assert larder.json("keys", "list", *ADA)[0]["last_request_at"] is not None


def test_list_says_that_there_is_none_or_nobody(larder: Larder, aws_in_memory: None) -> None:
    create_user("bob@acme.example", "Bob", now=clock.now())
    assert (
        "bob@acme.example has no keys"
        in larder("keys", "list", "--user", "bob@acme.example").stdout
    )
    assert "there is no user" in larder.refusal("keys", "list", "--user", "nobody@acme.example")


def test_a_revoked_key_is_refused_at_once(larder: Larder, cloud: Cloud) -> None:
    assert cloud.send("GET", "/v8/artifacts/status").status == 200
    assert larder.json("keys", "revoke", cloud.key.id) == {"id": cloud.key.id, "revoked": True}
    assert cloud.send("GET", "/v8/artifacts/status").status == 401
    assert "there is no key with the id" in larder.refusal("keys", "revoke", cloud.key.id)
