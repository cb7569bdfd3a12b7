"""`larder teams protect` and `unprotect`, trusted keys, and `--scope` of artifacts."""

import pytest

from larder.teams.models import People
from larder.teams.protection import read_protection
from tests.requests import Cloud, Sender
from tests.trust.scene import (
    CLEAN,
    POISON,
    make_scene,
    protected,
    put,
    read,
    scope_of,
    seconds_later,
)

from .conftest import Larder

CREATE = ("keys", "create", "--user", "ada@acme.example", "--unverified")
TRUSTED = (*CREATE, "--team", "acme", "--trusted")


def test_a_team_is_protected_and_unprotected(cloud: Cloud, larder: Larder) -> None:
    record = larder.json("teams", "protect", "acme", "--people", "read")
    assert (record["protected"], record["people"], record["keep_stored"]) == (True, "read", False)
    protection = read_protection(cloud.team.id)
    assert (protection.on, protection.people) == (True, People.READ)
    assert larder.json("teams", "protect", "acme", "--keep-stored")["keep_stored"] is True
    record = larder.json("teams", "unprotect", "acme")
    assert (record["protected"], record["trusted_from"]) == (False, None)
    assert read_protection(cloud.team.id).on is False


def test_the_first_trusted_key_protects_its_team(cloud: Cloud, larder: Larder) -> None:
    done = larder(*TRUSTED, "--json")
    assert "acme is now protected" in done.stderr
    assert read_protection(cloud.team.id).on is True
    assert larder(*TRUSTED, "--json").stderr == ""
    record = larder.json(*TRUSTED)
    assert record["permissions"] == {"artifacts": ["read", "write", "trust"]}
    with seconds_later():
        send = Sender(record["key"])
        put(send, "abc", CLEAN)
        assert scope_of(send, "abc") == "shared"


def test_no_protect_keeps_the_team_as_it_is(cloud: Cloud, larder: Larder) -> None:
    record = larder.json(*TRUSTED, "--no-protect", "--permissions", "artifacts=read")
    assert record["permissions"] == {"artifacts": ["read", "trust"]}
    assert read_protection(cloud.team.id).on is False


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--trusted"], "--trusted needs --team"),
        (["--team", "acme", "--no-protect"], "--no-protect needs --trusted"),
    ],
)
def test_options_that_do_not_fit_together(
    larder: Larder, cloud: Cloud, options: list[str], message: str
) -> None:
    assert message in larder.refusal(*CREATE, *options, status=2)


def test_a_trusted_key_needs_an_owner_or_admin(cloud: Cloud, larder: Larder) -> None:
    larder("users", "create", "--email", "bob@acme.example", "--name", "Bob")
    larder("teams", "add-member", "acme", "bob@acme.example", "--role", "DEVELOPER")
    output = larder.refusal(
        *("keys", "create", "--user", "bob@acme.example", "--team", "acme", "--trusted")
    )
    assert "bob@acme.example is not an owner or admin of acme" in output
    assert read_protection(cloud.team.id).on is None


def test_artifacts_of_a_scope(cloud: Cloud, larder: Larder) -> None:
    scope = f"k{cloud.key.id}"
    with protected(cloud):
        scene = make_scene(cloud)
        put(scene.pr, "abc", POISON)
        put(scene.pr, "def", POISON)
        put(scene.main, "abc", CLEAN)
        (shared,) = larder.json("artifacts", "list", "acme")
        assert ("scope" in shared, shared["size_bytes"]) == (False, len(CLEAN))
        listed = larder.json("artifacts", "list", "acme", "--scope", "all")
        assert [(one["hash"], one["scope"]) for one in listed] == [
            ("abc", "shared"),
            ("abc", scope),
            ("def", scope),
        ]
        assert larder.json("artifacts", "delete", "acme", "abc", "--scope", scope) == [
            {"hash": "abc", "deleted": True}
        ]
        record = larder.json("artifacts", "delete", "acme", "--scope", scope)
        assert (record["scope"], record["artifacts"]) == (scope, 1)
        assert read(scene.main, "abc") == CLEAN


@pytest.mark.parametrize("options", [("--scope", "x"), ("--scope", "shared"), ("--scope", "")])
def test_a_scope_that_cannot_be(cloud: Cloud, larder: Larder, options: tuple[str, ...]) -> None:
    result = larder("artifacts", "delete", "acme", *options, status=2 if "x" not in options else 1)
    assert "scope" in result.stderr


def test_the_steps_to_recover_from_a_poisoning(cloud: Cloud, larder: Larder) -> None:
    with protected(cloud):
        scene = make_scene(cloud)
        thief = make_scene(cloud).main
        put(thief, "abc", POISON)
        put(scene.pr, "def", POISON)
        assert read(scene.laptop, "abc") == POISON
        larder("teams", "unprotect", "acme")
        larder("teams", "protect", "acme")
        with seconds_later():
            assert read(scene.laptop, "abc") is None
            writer = larder.json("artifacts", "show", "acme", "abc")["writer"]
            assert larder.json("keys", "revoke", writer)["revoked"] is True
            assert thief("GET", "/v8/artifacts/abc").status == 401
            assert larder.json("artifacts", "delete", "acme", "--writer", writer)["artifacts"] == 1
            put(scene.main, "abc", CLEAN)
            assert read(scene.laptop, "abc") == read(scene.pr, "abc") == CLEAN
