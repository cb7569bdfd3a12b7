"""`larder artifacts`."""

from datetime import timedelta

import pytest

from larder import clock
from larder.accounts.link_tokens import issue_verification_token
from larder.accounts.service import create_user, delete_user
from larder.artifacts import sweep
from larder.artifacts.models import Totals
from larder.artifacts.repository.totals import read_totals
from larder.hashing import random_id
from larder.settings import settings
from larder.teams.members import leave_teams
from tests.direct_uploads import offer
from tests.invocations import handed_over
from tests.issuer import Issuer, github_claims
from tests.requests import Browser, Cloud, Sender
from tests.trust.conftest import made_rule
from tests.trust.exchanging import exchange
from tests.trust.scene import protected, put, session, trusted_key

from .conftest import Larder


@pytest.fixture
def stored(cloud: Cloud) -> Cloud:
    """Three artifacts of the team, 24 bytes together."""
    for hash in ("a1", "a2", "a3"):
        headers = {"x-artifact-duration": "1234", "x-artifact-client-ci": "BUILDKITE"}
        cloud.send("PUT", f"/v8/artifacts/{hash}", body=b"artifact", headers=headers)
    return cloud


def test_list_shows_stored_artifacts(larder: Larder, stored: Cloud) -> None:
    found = larder.json("artifacts", "list", "acme")
    assert [one["hash"] for one in found] == ["a1", "a2", "a3"]
    assert {one["writer"] for one in found} == {stored.key.id}
    shown = larder("artifacts", "list", stored.team.id).stdout
    assert "a2" in shown
    assert "8 B" in shown
    assert "BUILDKITE" in shown


def test_list_reads_pages_up_to_the_limit(larder: Larder, stored: Cloud) -> None:
    for number in range(5):
        offer(stored.send, f"a0{number}")
    found = larder.json("artifacts", "list", "acme", "--limit", "2")
    assert [one["hash"] for one in found] == ["a1", "a2"]


def test_list_has_the_filters_of_the_api(larder: Larder, stored: Cloud) -> None:
    now = clock.now()
    stored.send("PUT", "/v8/artifacts/b1", body=b"artifact")
    soon, earlier = ((now + timedelta(hours=part)).isoformat() for part in (1, -1))

    def hashes(*options: str) -> list[str]:
        return [one["hash"] for one in larder.json("artifacts", "list", "acme", *options)]

    assert hashes("--order", "uploaded")[0] == "b1"
    assert hashes("--prefix", "b") == ["b1"]
    assert hashes("--ci", "buildkite") == ["a1", "a2", "a3"]
    assert hashes("--ci", "GITLAB") == []
    assert hashes("--writer", "ada@acme.example", "--limit", "2") == ["a1", "a2"]
    assert hashes("--writer", random_id()) == []
    assert hashes("--from", soon) == hashes("--until", earlier) == []
    assert len(hashes("--from", earlier, "--until", soon)) == 4
    none = larder("artifacts", "list", "acme", "--prefix", "c").stdout
    assert "acme stores no such artifacts" in none
    refusal = larder.refusal("artifacts", "list", "acme", "--prefix", "#", status=2)
    assert "--prefix must be the beginning of a hash" in refusal


def test_list_says_when_nothing_is_stored(larder: Larder, cloud: Cloud) -> None:
    assert "acme stores nothing" in larder("artifacts", "list", "acme").stdout
    assert larder.json("artifacts", "list", "acme") == []


def test_show_prints_the_details(larder: Larder, stored: Cloud) -> None:
    shown = larder.json("artifacts", "show", "acme", "a1")
    assert (shown["size_bytes"], shown["duration_ms"], shown["ci"]) == (8, 1234, "BUILDKITE")
    assert (shown["writer"], shown["user_id"]) == (stored.key.id, stored.user.id)
    assert shown["expires_at"] > shown["created_at"]
    assert "1.2 s" in larder("artifacts", "show", "acme", "a1").stdout


def test_the_first_characters_of_a_hash_are_enough(larder: Larder, cloud: Cloud) -> None:
    for hash in ("abcdef0123456789", "abcdef01", "abcdef99"):
        assert put(cloud.send, hash, b"content") is None
    refusal = larder.refusal("artifacts", "delete", "acme", "abcdef")
    listed = "abcdef01, abcdef0123456789, abcdef99"
    assert refusal == f"abcdef begins the ids of several artifacts: {listed}. Type more of it"
    assert larder.json("artifacts", "show", "acme", "abcdef012")["hash"] == "abcdef0123456789"
    for typed in ("abcdef01", "abcdef9"):
        (deleted,) = larder.json("artifacts", "delete", "acme", typed)
        assert deleted == {"hash": typed.ljust(8, "9"), "deleted": True}


@pytest.mark.parametrize(
    ("hash", "expected"), [("other", "acme stores no artifact other"), ("a.b", "hash: must be"), ("#totals", "hash:")]
)
def test_show_rejects_unknown_and_invalid_hashes(larder: Larder, stored: Cloud, hash: str, expected: str) -> None:
    assert expected in larder.refusal("artifacts", "show", "acme", hash)


def test_list_marks_what_protection_hides(larder: Larder, stored: Cloud) -> None:
    with protected(stored):
        put(trusted_key(stored), "b1", b"made by main")
        (visible,) = larder.json("artifacts", "list", "acme")
        assert (visible["hash"], "hidden" in visible) == ("b1", False)
        found = larder.json("artifacts", "list", "acme", "--hidden")
        assert {one["hash"]: one["hidden"] for one in found} == {**dict.fromkeys(("a1", "a2", "a3"), True), "b1": False}
        header, *_ = larder("artifacts", "list", "acme", "--hidden").stdout.splitlines()
        assert "hidden" in header.lower()


def test_show_prints_an_artifact_in_its_scopes(larder: Larder, cloud: Cloud) -> None:
    scope = f"k{cloud.key.id}"
    with protected(cloud):
        put(cloud.send, "abc", b"made by a pull request")
        put(trusted_key(cloud), "abc", b"made by main")
        listed = larder.json("artifacts", "show", "acme", "abc", "--scope", "all")
        assert [one["scope"] for one in listed] == ["shared", scope]
        shown = larder.json("artifacts", "show", "acme", "abc", "--scope", scope)
        assert (shown["scope"], shown["size_bytes"]) == (scope, 22)
        assert larder.json("artifacts", "show", "acme", "abc")["size_bytes"] == 12
        missing = larder.refusal("artifacts", "show", "acme", "def", "--scope", scope)
        assert f"acme stores no artifact def in scope {scope}" in missing


def test_scopes_lists_who_writes_them(larder: Larder, cloud: Cloud) -> None:
    assert "acme has no own scopes" in larder("artifacts", "scopes", "acme").stdout
    with protected(cloud):
        put(cloud.send, "abc", b"made by a pull request")
        put(session(cloud), "abc", b"made on a laptop")
        sweep.sweep(now=clock.now())
        found = larder.json("artifacts", "scopes", "acme")
    assert [(one["kind"], one["size_bytes"]) for one in found] == [("key", 22), ("user", 16)]
    assert found[1]["name"] == "ada@acme.example"
    assert len(larder.json("artifacts", "scopes", "acme", "--limit", "1")) == 1


def test_writer_shows_the_key(larder: Larder, stored: Cloud) -> None:
    shown = larder.json("artifacts", "writer", "acme", stored.key.id)
    assert (shown["kind"], shown["user_id"]) == ("key", stored.user.id)
    assert shown["scope"] == f"k{stored.key.id}"


def test_writer_shows_the_run_of_a_job(larder: Larder, cloud: Cloud) -> None:
    issuer = Issuer()
    issuer.publish()
    pinned = {"repository_id": "74", "repository_owner_id": "65"}
    rule = made_rule(cloud, provider="github", pinned=pinned)
    claims = github_claims(event_name="pull_request", ref="refs/pull/7/merge")
    token = exchange(issuer.mint(claims)).json["access_token"]
    Sender(token, slug="acme")("PUT", "/v8/artifacts/abc", body=b"artifact")
    writer = larder.json("artifacts", "show", "acme", "abc")["writer"]
    shown = larder.json("artifacts", "writer", "acme", writer)
    assert (shown["kind"], shown["rule"]) == ("ci", rule.id)
    assert (shown["repository"], shown["ref"]) == ("acme/web", "refs/pull/7/merge")
    assert shown["scope"].startswith("c")


def test_writer_rejects_what_is_neither_a_job_nor_a_key(larder: Larder, cloud: Cloud) -> None:
    refusal = larder.refusal("artifacts", "writer", "acme", random_id(32))
    assert "is neither a CI job of acme nor an existing API key" in refusal


def test_delete_reports_which_hashes_existed(larder: Larder, stored: Cloud) -> None:
    assert larder.json("artifacts", "delete", "acme", "a1", "other", "a3") == [
        {"hash": "a1", "deleted": True},
        {"hash": "other", "deleted": False},
        {"hash": "a3", "deleted": True},
    ]
    assert read_totals(stored.team.id) == Totals(size_bytes=8, artifacts=1)
    assert "no" in larder("artifacts", "delete", "acme", "a1").stdout


@pytest.mark.parametrize("writer", ["key", "user id", "address"])
def test_delete_by_writer_deletes_all_their_artifacts(larder: Larder, stored: Cloud, writer: str) -> None:
    writers = {"key": stored.key.id, "user id": stored.user.id, "address": "ADA@acme.example"}
    done = larder.json("artifacts", "delete", "acme", "--writer", writers[writer])
    assert (done["artifacts"], done["size_bytes"], done["finished"]) == (3, 24, True)
    assert read_totals(stored.team.id) == Totals()
    # The sweep checks again for uploads that were in progress.
    assert sweep.sweep(now=clock.now() + timedelta(hours=26)).removals == 1


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "give hashes or --scope"),
        (["a1", "--writer", "x"], "give hashes or --scope"),
        (["a1", "--all", "acme"], "give hashes or --scope"),
        (["--writer", "x", "--until", "2026-11-21"], "give hashes or --scope"),
        (["--from", "2026-11-21"], "must come together"),
        (["--from", "2026-11-21", "--until", "2026-11-21"], "--from must be before --until"),
        (["--from", "yesterday", "--until", "2026-11-21"], "'yesterday' is not a time"),
        (["--all", "another"], "--all must repeat acme"),
        (["--all", ""], "--all must repeat acme"),
    ],
)
def test_delete_needs_exactly_one_target(larder: Larder, stored: Cloud, arguments: list[str], text: str) -> None:
    output = larder.refusal("artifacts", "delete", "acme", *arguments, status=2)
    assert text in output
    assert read_totals(stored.team.id).artifacts == 3


def test_delete_by_time_deletes_what_was_stored_then(larder: Larder, stored: Cloud) -> None:
    now = clock.now()
    hour = timedelta(hours=1)
    times = [(now + part * hour).isoformat(timespec="minutes") for part in (-2, -1, 1)]
    done = larder.json("artifacts", "delete", "acme", "--from", times[0], "--until", times[1])
    assert (done["artifacts"], done["until"][:16]) == (0, times[1][:16])
    done = larder.json("artifacts", "delete", "acme", "--from", times[1], "--until", times[2])
    assert (done["artifacts"], done["finished"]) == (3, True)


def test_delete_all_repeats_the_slug(larder: Larder, stored: Cloud) -> None:
    done = larder.json("artifacts", "delete", "acme", "--all", "acme")
    assert (done["all"], done["artifacts"], done["size_bytes"]) == ("acme", 3, 24)


def test_delete_reports_an_unknown_user(larder: Larder, stored: Cloud) -> None:
    output = larder.refusal("artifacts", "delete", "acme", "--writer", "bob@acme.example")
    assert "there is no user bob@acme.example" in output


@pytest.mark.parametrize("writer", ["nokey", "", "x" * 64, "team_" + "x" * 24, "x" * 31 + "."])
def test_delete_rejects_an_invalid_writer_id(larder: Larder, stored: Cloud, writer: str) -> None:
    output = larder.refusal("artifacts", "delete", "acme", "--writer", writer, status=2)
    assert "--writer must be the id of a key, a session, a user or a rule" in output
    assert "x" * 24 not in output
    assert "removal" not in larder("artifacts", "audit", "acme").stdout


def test_delete_says_when_the_writer_has_no_artifacts(larder: Larder, stored: Cloud) -> None:
    nobody = random_id()
    done = larder("artifacts", "delete", "acme", "--writer", nobody)
    assert done.stderr == "acme has no such artifacts.\n"
    done = larder("artifacts", "delete", "acme", "--writer", stored.key.id)
    assert done.stderr == ""


def test_audit_shows_who_deleted_what(larder: Larder, stored: Cloud, manage: Sender) -> None:
    manage("DELETE", "/v1/artifacts/a1")
    with handed_over(settings().removal_function):
        manage.asking(writer=stored.key.id)("DELETE", "/v1/artifacts")
    larder("artifacts", "delete", "acme", "a2")
    output = larder.json("artifacts", "audit", "acme", "--limit", "3")
    assert [(one["action"], one["subject"], one["by"]) for one in output] == [
        ("artifact_deleted", "a2", "operator"),
        ("removal_asked", stored.key.id, "ada@acme.example"),
        ("artifact_deleted", "a1", "ada@acme.example"),
    ]
    assert [one["artifacts"] for one in output] == [1, 0, 1]
    assert output[2]["user_id"] == stored.user.id
    assert len(larder.json("artifacts", "audit", "acme", "--limit", "2")) == 2
    assert "ada@acme.example" in larder("artifacts", "audit", "acme").stdout


def test_audit_shows_the_id_of_a_deleted_user(larder: Larder, stored: Cloud, manage: Sender) -> None:
    manage("DELETE", "/v1/artifacts/a1")
    delete_user(stored.user.id, now=clock.now())
    leave_teams(stored.user.id)
    by = {one["action"]: one["by"] for one in larder.json("artifacts", "audit", "acme")}
    assert (by["member_removed"], by["artifact_deleted"]) == (stored.user.id, stored.user.id)


def test_audit_finds_deleted_owners_by_their_id(larder: Larder, cloud: Cloud) -> None:
    larder("teams", "delete", "acme", "--yes")
    larder("users", "delete", "ada@acme.example", "--yes")
    for id, action in ((cloud.team.id, "team_deleted"), (cloud.user.id, "user_deleted")):
        actions = {one["action"]: one for one in larder.json("artifacts", "audit", id)}
        assert (actions[action]["subject"], actions[action]["by"]) == (id, "operator")


def test_audit_shows_what_was_used_without_a_key_or_session(larder: Larder, cloud: Cloud) -> None:
    bob = create_user("bob@acme.example", "Bob", now=clock.now())
    token = issue_verification_token(bob, now=clock.now())
    Browser().get(f"/verify-email?token={token}")
    shown = larder.json("artifacts", "audit", bob.email)
    assert ("email_verified", "link") in {(one["action"], one["by"]) for one in shown}


def test_audit_shows_roles(larder: Larder, cloud: Cloud) -> None:
    larder("users", "create", "--email", "bob@acme.example", "--name", "Bob")
    larder("teams", "add-member", "acme", "bob@acme.example", "--role", "viewer")
    shown = larder.json("artifacts", "audit", "acme")
    added = ("member_added", "VIEWER", "Bob")
    assert added in {(one["action"], one["role"], one["name"]) for one in shown}


def test_audit_names_a_rotated_key_that_is_gone(larder: Larder, cloud: Cloud) -> None:
    made = larder.json("keys", "rotate", cloud.key.id, "--overlap", "0")
    (rotated,) = larder.json("artifacts", "audit", "acme", "--action", "key_rotated")
    assert (rotated["subject"], rotated["name"]) == (cloud.key.id, cloud.key.name)
    assert rotated["successor"] == made["id"]
    assert "key_rotated" in larder("artifacts", "audit", "acme").stdout
    (created,) = larder.json("artifacts", "audit", "acme", "--action", "key_created")
    assert created["subject"] == cloud.key.id


def test_an_address_stands_for_artifacts_without_a_team(larder: Larder, stored: Cloud, personal: Sender) -> None:
    ada = "Ada@acme.example"
    assert "ada@acme.example stores nothing" in larder("artifacts", "list", ada).stdout
    for hash in ("b1", "b2"):
        assert personal("PUT", f"/v8/artifacts/{hash}", body=b"own").status == 202
    assert [one["hash"] for one in larder.json("artifacts", "list", ada)] == ["b1", "b2"]
    assert larder.json("artifacts", "show", ada, "b1")["user_id"] == stored.user.id
    output = larder.refusal("artifacts", "show", ada, "a1")
    assert output == "ada@acme.example stores no artifact a1"
    assert larder.json("artifacts", "delete", ada, "b1") == [{"hash": "b1", "deleted": True}]
    done = larder.json("artifacts", "delete", ada, "--writer", ada)
    assert (done["artifacts"], done["size_bytes"], done["finished"]) == (1, 3, True)
    assert read_totals(stored.user.id) == Totals()
    audit = larder.json("artifacts", "audit", ada)
    deleted = [one for one in audit if one["action"] == "artifact_deleted"]
    assert [(one["subject"], one["by"]) for one in deleted] == [("b1", "operator")]
    # The team's artifacts stay.
    assert read_totals(stored.team.id).artifacts == 3


@pytest.mark.parametrize("command", [("list",), ("show", "a1"), ("delete", "a1"), ("audit",)], ids=lambda one: one[0])
def test_an_unknown_address_is_reported(larder: Larder, cloud: Cloud, command: tuple[str, ...]) -> None:
    name, *more = command
    output = larder.refusal("artifacts", name, "bob@acme.example", *more)
    assert "there is no user bob@acme.example" in output


def test_audit_says_when_it_is_empty(larder: Larder, cloud: Cloud) -> None:
    unknown = "team_unknown"
    assert f"the audit of {unknown} is empty" in larder("artifacts", "audit", unknown).stdout
    assert larder.json("artifacts", "audit", unknown) == []
