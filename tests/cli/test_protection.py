"""`larder teams protect` and `unprotect`, trusted keys, and `--scope` of artifacts."""

import json

import pytest

from larder import clock
from larder.accounts.email_jobs import TeamProtected, parse_job
from larder.accounts.service import create_user
from larder.teams.members import add_member
from larder.teams.models import People, Role
from larder.teams.protection import read_protection
from tests.conftest import SetOption
from tests.requests import Cloud, Sender
from tests.trust.scene import CLEAN, POISON, make_scene, protected, put, read, scope_of, seconds_later

from .conftest import Larder
from .fake_aws import FakeAws

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


def jobs_of(mail_function: FakeAws) -> list[TeamProtected]:
    jobs = [parse_job(json.loads(body)) for body in mail_function.bodies]
    return [job for job in jobs if isinstance(job, TeamProtected)]


def test_the_owners_get_an_email_if_the_operator_protects_a_team_or_ends_it(
    cloud: Cloud, larder: Larder, mail_function: FakeAws
) -> None:
    olga = create_user("olga@acme.example", "Olga", email_verified=True, now=clock.now())
    add_member(cloud.team.id, olga.id, Role.OWNER, now=clock.now())
    for command in ("protect", "protect", "unprotect"):
        larder("teams", command, "acme")
    # Whether the team is protected is decided now.
    larder("trust", "add", "acme", "--github", "acme/web")
    sent = {(job.user_id, job.ended) for job in jobs_of(mail_function)}
    assert sent == {(user.id, ended) for user in (cloud.user, olga) for ended in (False, True)}
    assert len(jobs_of(mail_function)) == 4


@pytest.mark.parametrize("command", [("trust", "add", "acme", "--github", "acme/web"), TRUSTED])
def test_the_owners_get_an_email_about_the_first_trusted_credential(
    cloud: Cloud, larder: Larder, mail_function: FakeAws, command: tuple[str, ...]
) -> None:
    larder(*command)
    (job,) = jobs_of(mail_function)
    assert (job.user_id, job.team_id, job.ended) == (cloud.user.id, cloud.team.id, False)


def test_a_failure_to_notify_is_a_warning(cloud: Cloud, larder: Larder, option: SetOption) -> None:
    option("email_function", "missing")
    done = larder("teams", "protect", "acme")
    assert "Warning: could not notify the owners of acme" in done.stderr
    assert read_protection(cloud.team.id).on is True


@pytest.mark.usefixtures("mail_function")
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


@pytest.mark.parametrize("command", [TRUSTED, ("trust", "add", "acme", "--github", "acme/web")])
@pytest.mark.usefixtures("mail_function")
def test_to_hide_what_is_stored_needs_a_yes(cloud: Cloud, larder: Larder, command: tuple[str, ...]) -> None:
    put(cloud.send, "abc", CLEAN)
    refused = larder(*command, status=1, answer="n\n")
    assert "its 1 stored artifacts are hidden" in refused.stderr
    assert (read_protection(cloud.team.id).on, refused.stdout) == (None, "")
    assert larder.json("artifacts", "list", "acme")
    larder(*command, "--protect")
    assert read_protection(cloud.team.id).on is True
    with seconds_later():
        assert "acme shows none of its 1 artifacts: --hidden lists" in larder("artifacts", "list", "acme").stdout


def test_no_protect_keeps_the_team_as_it_is(cloud: Cloud, larder: Larder) -> None:
    record = larder.json(*TRUSTED, "--no-protect", "--permissions", "artifacts=read")
    assert record["permissions"] == {"artifacts": ["read", "trust"]}
    assert read_protection(cloud.team.id).on is False


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--trusted"], "--trusted needs --team"),
        (["--team", "acme", "--no-protect"], "--protect and --no-protect need --trusted"),
    ],
)
def test_options_that_do_not_fit_together(larder: Larder, cloud: Cloud, options: list[str], message: str) -> None:
    assert message in larder.refusal(*CREATE, *options, status=2)


def test_a_trusted_key_needs_an_owner_or_admin(cloud: Cloud, larder: Larder) -> None:
    larder("users", "create", "--email", "bob@acme.example", "--name", "Bob")
    larder("teams", "add-member", "acme", "bob@acme.example", "--role", "DEVELOPER")
    output = larder.refusal(*("keys", "create", "--user", "bob@acme.example", "--team", "acme", "--trusted"))
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
        assert [(one["hash"], one["scope"]) for one in listed] == [("abc", "shared"), ("abc", scope), ("def", scope)]
        assert larder.json("artifacts", "delete", "acme", "abc", "--scope", scope) == [{"hash": "abc", "deleted": True}]
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
