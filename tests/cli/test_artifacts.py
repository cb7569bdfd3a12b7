"""`larder artifacts`."""

from datetime import timedelta

import pytest

from larder import clock
from larder.accounts.service import remove_user
from larder.artifacts import sweep
from larder.artifacts.models import Totals
from larder.artifacts.repository.totals import read_totals
from larder.hashing import random_id
from larder.settings import settings
from larder.teams.service import leave_teams
from tests.direct_uploads import offer
from tests.invocations import handed_over
from tests.requests import Cloud, Sender

from .conftest import Larder


@pytest.fixture
def stored(cloud: Cloud) -> Cloud:
    """Three artifacts of the team, 24 bytes together."""
    for hash in ("a1", "a2", "a3"):
        headers = {"x-artifact-duration": "1234", "x-artifact-client-ci": "BUILDKITE"}
        cloud.send("PUT", f"/v8/artifacts/{hash}", body=b"artifact", headers=headers)
    return cloud


def test_list_names_what_is_stored(larder: Larder, stored: Cloud) -> None:
    found = larder.json("artifacts", "list", "acme")
    assert [one["hash"] for one in found] == ["a1", "a2", "a3"]
    assert {one["writer"] for one in found} == {stored.key.id}
    shown = larder("artifacts", "list", stored.team.id).stdout
    assert "a2" in shown
    assert "8 B" in shown
    assert "BUILDKITE" in shown


def test_list_ends_at_the_limit_and_reads_on_till_it_is_reached(
    larder: Larder, stored: Cloud
) -> None:
    for number in range(5):
        offer(stored.send, f"a0{number}")
    found = larder.json("artifacts", "list", "acme", "--limit", "2")
    assert [one["hash"] for one in found] == ["a1", "a2"]


def test_list_says_that_there_is_nothing(larder: Larder, cloud: Cloud) -> None:
    assert "acme stores nothing" in larder("artifacts", "list", "acme").stdout
    assert larder.json("artifacts", "list", "acme") == []


def test_show_tells_what_is_known(larder: Larder, stored: Cloud) -> None:
    shown = larder.json("artifacts", "show", "acme", "a1")
    assert (shown["size_bytes"], shown["duration_ms"], shown["ci"]) == (8, 1234, "BUILDKITE")
    assert (shown["writer"], shown["user_id"]) == (stored.key.id, stored.user.id)
    assert shown["expires_at"] > shown["created_at"]
    assert "1.2 s" in larder("artifacts", "show", "acme", "a1").stdout


@pytest.mark.parametrize(
    ("hash", "expected"),
    [("other", "acme stores no artifact other"), ("a.b", "hash: must be"), ("#totals", "hash:")],
)
def test_show_tells_what_is_no_artifact(
    larder: Larder, stored: Cloud, hash: str, expected: str
) -> None:
    assert expected in larder.refusal("artifacts", "show", "acme", hash)


def test_delete_deletes_and_tells_what_was_not_there(larder: Larder, stored: Cloud) -> None:
    assert larder.json("artifacts", "delete", "acme", "a1", "other", "a3") == [
        {"hash": "a1", "deleted": True},
        {"hash": "other", "deleted": False},
        {"hash": "a3", "deleted": True},
    ]
    assert read_totals(stored.team.id) == Totals(size_bytes=8, artifacts=1)
    assert "no" in larder("artifacts", "delete", "acme", "a1").stdout


@pytest.mark.parametrize("who", ["key", "user id", "address"])
def test_delete_removes_all_that_somebody_wrote(larder: Larder, stored: Cloud, who: str) -> None:
    writers = {"key": stored.key.id, "user id": stored.user.id, "address": "ADA@acme.example"}
    done = larder.json("artifacts", "delete", "acme", "--writer", writers[who])
    assert (done["artifacts"], done["size_bytes"], done["finished"]) == (3, 24, True)
    assert read_totals(stored.team.id) == Totals()
    # The sweep looks again for what was under way.
    assert sweep.sweep(now=clock.now() + timedelta(hours=26)).removals == 1


@pytest.mark.parametrize("arguments", [[], ["a1", "--writer", "x"]])
def test_delete_needs_to_know_what(larder: Larder, stored: Cloud, arguments: list[str]) -> None:
    told = larder.refusal("artifacts", "delete", "acme", *arguments, status=2)
    assert "either hashes, or --writer" in told
    assert read_totals(stored.team.id).artifacts == 3


def test_delete_names_a_user_who_does_not_exist(larder: Larder, stored: Cloud) -> None:
    told = larder.refusal("artifacts", "delete", "acme", "--writer", "bob@acme.example")
    assert "there is no user bob@acme.example" in told


@pytest.mark.parametrize("writer", ["nokey", "", "x" * 64, "team_" + "x" * 24, "x" * 31 + "."])
def test_delete_refuses_what_is_nobodys_id(larder: Larder, stored: Cloud, writer: str) -> None:
    told = larder.refusal("artifacts", "delete", "acme", "--writer", writer, status=2)
    assert "--writer must be the id of a key, a session or a user, 32 letters and digits" in told
    assert "x" * 24 not in told
    assert larder.json("artifacts", "audit", "acme") == []


def test_delete_says_that_somebody_wrote_nothing(larder: Larder, stored: Cloud) -> None:
    nobody = random_id()
    done = larder("artifacts", "delete", "acme", "--writer", nobody)
    assert done.stderr == f"Nothing that {nobody} wrote was stored for acme.\n"
    done = larder("artifacts", "delete", "acme", "--writer", stored.key.id)
    assert done.stderr == ""


def test_audit_tells_who_removed_what(larder: Larder, stored: Cloud, manage: Sender) -> None:
    manage("DELETE", "/v1/artifacts/a1")
    with handed_over(settings().removal_function):
        manage.asking(writer=stored.key.id)("DELETE", "/v1/artifacts")
    larder("artifacts", "delete", "acme", "a2")
    told = larder.json("artifacts", "audit", "acme")
    assert [(one["action"], one["subject"], one["by"]) for one in told] == [
        ("artifact_deleted", "a2", "operator"),
        ("removal_asked", stored.key.id, "ada@acme.example"),
        ("artifact_deleted", "a1", "ada@acme.example"),
    ]
    assert [one["artifacts"] for one in told] == [1, 0, 1]
    assert told[2]["user_id"] == stored.user.id
    assert len(larder.json("artifacts", "audit", "acme", "--limit", "2")) == 2
    assert "ada@acme.example" in larder("artifacts", "audit", "acme").stdout


def test_audit_names_by_their_id_who_has_left(
    larder: Larder, stored: Cloud, manage: Sender
) -> None:
    manage("DELETE", "/v1/artifacts/a1")
    remove_user(stored.user.id, now=clock.now())
    leave_teams(stored.user.id)
    (told,) = larder.json("artifacts", "audit", "acme")
    assert told["by"] == stored.user.id


def test_an_address_names_what_its_user_stores_without_a_team(
    larder: Larder, stored: Cloud, personal: Sender
) -> None:
    ada = "Ada@acme.example"
    assert "ada@acme.example stores nothing" in larder("artifacts", "list", ada).stdout
    for hash in ("b1", "b2"):
        assert personal("PUT", f"/v8/artifacts/{hash}", body=b"own").status == 202
    assert [one["hash"] for one in larder.json("artifacts", "list", ada)] == ["b1", "b2"]
    assert larder.json("artifacts", "show", ada, "b1")["user_id"] == stored.user.id
    told = larder.refusal("artifacts", "show", ada, "a1")
    assert told == "ada@acme.example stores no artifact a1"
    assert larder.json("artifacts", "delete", ada, "b1") == [{"hash": "b1", "deleted": True}]
    done = larder.json("artifacts", "delete", ada, "--writer", ada)
    assert (done["artifacts"], done["size_bytes"], done["finished"]) == (1, 3, True)
    assert read_totals(stored.user.id) == Totals()
    audit = larder.json("artifacts", "audit", ada)
    assert [(one["subject"], one["by"]) for one in audit][-1] == ("b1", "operator")
    # The team's stay.
    assert read_totals(stored.team.id).artifacts == 3


@pytest.mark.parametrize(
    "command", [("list",), ("show", "a1"), ("delete", "a1"), ("audit",)], ids=lambda one: one[0]
)
def test_an_address_of_nobody_is_told(
    larder: Larder, cloud: Cloud, command: tuple[str, ...]
) -> None:
    name, *more = command
    told = larder.refusal("artifacts", name, "bob@acme.example", *more)
    assert "there is no user bob@acme.example" in told


def test_audit_says_that_nothing_was_removed(larder: Larder, cloud: Cloud) -> None:
    assert "nobody has removed anything" in larder("artifacts", "audit", "acme").stdout
    assert larder.json("artifacts", "audit", "acme") == []
