"""`larder teams`."""

import json

import pytest

from larder import clock
from larder.accounts.email_jobs import InviteToTeam, parse_job
from larder.accounts.email_links import follow_verification_token
from larder.accounts.link_tokens import issue_verification_token
from larder.accounts.service import create_user, delete_user
from larder.teams.members import leave_teams, role_of
from larder.teams.models import ROLE_WORDS
from larder.teams.teams import deleted_teams
from larder_cli.mail_context import operator_mail_context
from tests.conftest import SetOption
from tests.requests import Cloud, Sender

from .conftest import Larder
from .fake_aws import FakeAws

PASSWORD = "correct horse battery staple"


def put(cloud: Cloud, hash: str, body: bytes) -> int:
    return cloud.send("PUT", f"/v8/artifacts/{hash}", body=body).status


def test_create_adds_a_team_with_its_owner(larder: Larder) -> None:
    larder("users", "create", "--email", "ada@acme.example", "--name", "Ada")
    made = larder.json(*("teams", "create", "--name", "Acme", "--slug", "acme", "--owner", "ada@acme.example"))
    assert made["id"].startswith("team_")
    assert (made["slug"], made["name"]) == ("acme", "Acme")
    assert (made["caching"], made["status"], made["block"]) == ("enabled", "enabled", None)
    assert (made["quota_bytes"], made["stored_bytes"], made["artifacts"]) == (10**11, 0, 0)
    larder("keys", "create", "--user", "ada@acme.example", "--team", "acme")


def test_a_slug_belongs_to_one_team(larder: Larder, cloud: Cloud) -> None:
    refusal = larder.refusal(*("teams", "create", "--name", "Other", "--slug", "acme", "--owner", "ada@acme.example"))
    assert refusal == "another team has the slug acme"


@pytest.mark.parametrize(
    ("slug", "owner", "expected"),
    [
        ("No Slug", "ada@acme.example", "slug: must be"),
        ("other", "nobody@acme.example", "there is no user nobody@acme.example"),
    ],
)
def test_a_team_needs_a_slug_and_an_owner(larder: Larder, cloud: Cloud, slug: str, owner: str, expected: str) -> None:
    arguments = ("teams", "create", "--name", "Other", "--slug", slug, "--owner", owner)
    assert expected in larder.refusal(*arguments)


def test_list_shows_all_teams_by_slug(larder: Larder, cloud: Cloud) -> None:
    larder("teams", "create", "--name", "Zed", "--slug", "zed", "--owner", "ada@acme.example")
    assert [team["slug"] for team in larder.json("teams", "list")] == ["acme", "zed"]
    shown = larder("teams", "list").stdout
    assert "acme" in shown
    assert cloud.team.id in shown


def test_list_shows_how_much_each_team_stores(larder: Larder, cloud: Cloud) -> None:
    larder("teams", "create", "--name", "Zed", "--slug", "zed", "--owner", "ada@acme.example")
    assert put(cloud, "a1", b"x" * 1500) == 202
    output = larder.json("teams", "list")
    assert [(team["slug"], team["stored_bytes"], team["artifacts"]) for team in output] == [
        ("acme", 1500, 1),
        ("zed", 0, 0),
    ]
    assert "1.5 kB" in larder("teams", "list").stdout


def test_list_says_when_there_are_no_teams(larder: Larder) -> None:
    assert "larder teams create" in larder("teams", "list").stdout
    assert larder.json("teams", "list") == []


def test_show_finds_a_team_by_slug_and_by_id(larder: Larder, cloud: Cloud) -> None:
    assert larder.json("teams", "show", "acme") == larder.json("teams", "show", cloud.team.id)


@pytest.mark.parametrize("team", ["nobody", "team_nobody", "", "no body/../x"])
def test_an_unknown_team_is_reported(larder: Larder, team: str) -> None:
    assert f"there is no team {team}" in larder.refusal("teams", "show", team)


@pytest.mark.parametrize(
    "arguments",
    [
        ("teams", "show", "eve@acme.example"),
        ("teams", "set", "eve@acme.example", "--unblock"),
        ("teams", "members", "eve@acme.example"),
        ("teams", "add-member", "eve@acme.example", "acme"),
        ("keys", "create", "--user", "ada@acme.example", "--team", "eve@acme.example"),
    ],
    ids=" ".join,
)
def test_an_address_in_place_of_a_team_suggests_the_users_commands(
    larder: Larder, cloud: Cloud, arguments: tuple[str, ...]
) -> None:
    output = larder.refusal(*arguments)
    assert "there is no team eve@acme.example: an email address names a user" in output
    assert "`larder users show eve@acme.example`" in output
    assert "`larder usage eve@acme.example`" in output


@pytest.mark.usefixtures("refusing")
def test_show_prints_stored_bytes_and_the_status_that_clients_see(larder: Larder, cloud: Cloud) -> None:
    assert put(cloud, "a1", b"x" * 700) == 202
    assert put(cloud, "a2", b"x" * 800) == 202
    larder("teams", "set", "acme", "--quota", "1kB", "--yes")
    shown = larder.json("teams", "show", "acme")
    assert (shown["stored_bytes"], shown["artifacts"], shown["quota_bytes"]) == (1500, 2, 1000)
    assert (shown["caching"], shown["status"]) == ("enabled", "over_limit")
    assert cloud.send("GET", "/v8/artifacts/status").json == {"status": "over_limit"}
    assert "1.5 kB" in larder("teams", "show", "acme").stdout


@pytest.mark.usefixtures("cloud")
def test_the_smallest_quota_is_a_byte(larder: Larder) -> None:
    assert larder.json("teams", "set", "acme", "--quota", "1B")["quota_bytes"] == 1
    assert "quota" in larder.refusal("teams", "set", "acme", "--quota", "0B")


@pytest.mark.usefixtures("refusing")
def test_a_quota_stops_writes_until_the_default_is_back(larder: Larder, cloud: Cloud) -> None:
    larder("teams", "set", "acme", "--quota", "1KiB")
    assert put(cloud, "a1", b"x" * 1025) == 403
    assert larder.json("teams", "set", "acme", "--default-quota")["quota_bytes"] == 10**11
    assert put(cloud, "a1", b"x" * 1025) == 202


@pytest.mark.parametrize("caching", ["disabled", "paused"])
def test_caching_can_be_disabled_and_enabled(larder: Larder, cloud: Cloud, caching: str) -> None:
    assert larder.json("teams", "set", "acme", "--caching", caching)["status"] == caching
    assert cloud.send("PUT", "/v8/artifacts/a1", body=b"x").code == f"remote_caching_{caching}"
    larder("teams", "set", "acme", "--caching", "enabled")
    assert put(cloud, "a1", b"x") == 202


@pytest.mark.parametrize("block", ["soft_block", "payment_missing"])
def test_a_blocked_team_gets_402_until_it_is_unblocked(larder: Larder, cloud: Cloud, block: str) -> None:
    assert larder.json("teams", "set", "acme", "--block", block)["block"] == block
    assert put(cloud, "a1", b"x") == 402
    assert larder.json("teams", "set", "acme", "--unblock")["block"] is None
    assert put(cloud, "a1", b"x") == 202


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("soft_block", "This account is blocked: ask Eve"),
        ("payment_missing", "A payment for this account is missing: ask Eve"),
    ],
)
def test_blocked_users_see_the_reason(larder: Larder, cloud: Cloud, block: str, message: str) -> None:
    team = ("teams", "set", "acme", "--block", block)
    assert larder.json(*team, "--reason", "ask Eve")["block_reason"] == "ask Eve"
    assert cloud.send("GET", "/v8/artifacts/status").message == message
    assert "ask Eve" in larder("teams", "show", "acme").stdout
    # A new block does not keep the earlier reason.
    assert larder.json(*team)["block_reason"] is None
    assert "ask Eve" not in cloud.send("GET", "/v8/artifacts/status").message


def test_the_block_is_next_to_the_status(larder: Larder, cloud: Cloud) -> None:
    larder("teams", "set", "acme", "--block", "soft_block", "--reason", "ask Eve")
    lines = [" ".join(line.split()) for line in larder("teams", "show", "acme").stdout.splitlines()]
    start = lines.index("status enabled")
    assert lines[start + 1 : start + 3] == ["block soft_block", "block reason ask Eve"]


@pytest.mark.parametrize("reason", ["", " ", "x" * 201, "two\nlines", "\x1b[31mred"])
def test_a_reason_is_one_printable_line(larder: Larder, cloud: Cloud, reason: str) -> None:
    team = ("teams", "set", "acme", "--block", "soft_block", "--reason", reason)
    assert larder.refusal(*team) == "reason: must hold 1 to 200 printable characters"
    assert larder.json("teams", "show", "acme")["block"] is None


def test_set_keeps_other_settings(larder: Larder, cloud: Cloud) -> None:
    larder("teams", "set", "acme", "--quota", "50GB", "--block", "soft_block")
    shown = larder.json("teams", "set", "acme", "--caching", "paused")
    assert shown["quota_bytes"] == 50 * 10**9
    assert shown["block"] == "soft_block"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), "nothing to change"),
        (("--block", "soft_block", "--unblock"), "--block and --unblock"),
        (("--reason", "because"), "--reason needs --block"),
        (("--reason", "because", "--unblock"), "--reason needs --block"),
        (("--quota", "1GB", "--default-quota"), "--quota and --default-quota"),
        (("--quota", "much"), "is not a size"),
        (("--caching", "over_limit"), "--caching"),
        (("--block", "other"), "--block"),
    ],
)
def test_set_rejects_contradictory_and_invalid_options(
    larder: Larder, cloud: Cloud, arguments: tuple[str, ...], expected: str
) -> None:
    assert expected in larder.refusal("teams", "set", "acme", *arguments, status=2)


def test_set_rejects_a_zero_quota_and_an_unknown_team(larder: Larder, cloud: Cloud) -> None:
    assert larder.refusal("teams", "set", "acme", "--quota", "0").startswith("quota: ")
    assert "there is no team nobody" in larder.refusal("teams", "set", "nobody", "--unblock")


@pytest.mark.parametrize("command", [("teams", "add-member"), ("teams", "invite"), ("sso", "map")], ids=" ".join)
def test_the_help_explains_the_roles_to_choose_from(command: tuple[str, str]) -> None:
    shown = " ".join(Larder()(*command, "--help").stdout.split())
    assert all(f"{role}: {words}" in shown for role, words in ROLE_WORDS.items())
    assert "DEVELOPER" not in shown


def test_a_member_can_be_added_promoted_and_removed(larder: Larder, cloud: Cloud) -> None:
    create_user("bob@acme.example", "Bob", email_verified=True, now=clock.now())
    member = ("acme", "bob@acme.example")
    assert larder.json("teams", "add-member", *member, "--role", "viewer")["role"] == "VIEWER"
    token = larder.json("keys", "create", "--user", "bob@acme.example", "--team", "acme")["key"]
    bob = Cloud(cloud.user, cloud.team, cloud.key, token, type(cloud.send)(token, slug="acme"))
    assert put(bob, "a1", b"x") == 403
    assert larder.json("teams", "add-member", *member)["role"] == "MEMBER"
    assert put(bob, "a1", b"x") == 202
    removed = larder.json("teams", "remove-member", *member)
    assert (removed["removed"], len(removed["keys_ended"])) == (True, 1)
    assert put(bob, "a1", b"x") == 401  # the key was deleted with the membership


def test_a_user_who_has_not_proven_the_address_is_not_added(larder: Larder, cloud: Cloud) -> None:
    """A stranger may have signed up with the address."""
    stranger = create_user("cto@acme.example", "CTO", password=PASSWORD, now=clock.now())
    token = issue_verification_token(stranger, now=clock.now())
    follow_verification_token(token, operator_mail_context("a scanner"), now=clock.now())
    adding = ("teams", "add-member", "acme", "cto@acme.example", "--role", "OWNER")
    refusal = larder.refusal(*adding)
    assert "cto@acme.example has not proven that the address is theirs" in refusal
    assert "`larder teams invite acme cto@acme.example --role OWNER`" in refusal
    assert role_of(cloud.team.id, stranger.id) is None
    assert larder.json(*adding, "--unverified")["role"] == "OWNER"
    assert [one["proven"] for one in larder.json("teams", "members", "acme")] == [True, False]


def test_a_user_who_has_not_proven_the_address_is_not_given_a_team(larder: Larder, cloud: Cloud) -> None:
    create_user("cto@acme.example", "CTO", password=PASSWORD, now=clock.now())
    creating = ("teams", "create", "--name", "Web", "--slug", "web", "--owner", "cto@acme.example")
    assert "has not proven that the address is theirs" in larder.refusal(*creating)
    assert "there is no team web" in larder.refusal("teams", "show", "web")
    assert larder.json(*creating, "--unverified")["slug"] == "web"


def test_a_user_of_the_operator_can_be_added_at_once(larder: Larder, cloud: Cloud) -> None:
    larder("users", "create", "--email", "bob@acme.example", "--name", "Bob")
    assert larder.json("users", "show", "bob@acme.example")["proven"] is True
    assert larder.json("teams", "add-member", "acme", "bob@acme.example")["role"] == "MEMBER"


def test_only_a_member_can_be_removed(larder: Larder, cloud: Cloud) -> None:
    create_user("bob@acme.example", "Bob", email_verified=True, now=clock.now())
    refusal = larder.refusal("teams", "remove-member", "acme", "bob@acme.example")
    assert refusal == "bob@acme.example is not a member of acme"


def test_members_are_listed_with_role_email_name_and_date(larder: Larder, cloud: Cloud) -> None:
    create_user("bob@acme.example", "Bob", email_verified=True, now=clock.now())
    larder("teams", "add-member", "acme", "bob@acme.example", "--role", "DEVELOPER")
    ada, bob = larder.json("teams", "members", "acme")
    assert (ada["role"], ada["email"], ada["user_id"]) == ("OWNER", cloud.user.email, cloud.user.id)
    assert (bob["role"], bob["email"], bob["name"]) == ("DEVELOPER", "bob@acme.example", "Bob")
    assert ada["joined_at"] <= bob["joined_at"]
    assert ada["joined_at"].endswith("Z")
    shown = larder("teams", "members", cloud.team.id).stdout
    assert all(word in shown for word in ("DEVELOPER", "bob@acme.example", "Bob", "UTC"))


def test_a_deleted_user_is_listed_until_the_membership_is_deleted(larder: Larder, cloud: Cloud) -> None:
    bob = create_user("bob@acme.example", "Bob", email_verified=True, now=clock.now())
    larder("teams", "add-member", "acme", "bob@acme.example")
    delete_user(bob.id, now=clock.now())
    listed = larder.json("teams", "members", "acme")
    assert [(one["email"], one["name"]) for one in listed[1:]] == [(None, None)]
    assert leave_teams(bob.id)
    assert len(larder.json("teams", "members", "acme")) == 1


def test_a_team_without_members_lists_none(larder: Larder, cloud: Cloud) -> None:
    assert leave_teams(cloud.user.id)
    assert larder.json("teams", "members", "acme") == []
    assert "larder teams add-member acme" in larder("teams", "members", "acme").stdout


def test_members_rejects_an_unknown_team(larder: Larder) -> None:
    assert "there is no team nobody" in larder.refusal("teams", "members", "nobody")


@pytest.mark.parametrize(
    "change", [("remove-member",), ("add-member", "--role", "MEMBER"), ("add-member",)], ids=" ".join
)
def test_the_only_owner_cannot_leave_or_lose_the_role(larder: Larder, cloud: Cloud, change: tuple[str, ...]) -> None:
    create_user("bob@acme.example", "Bob", email_verified=True, now=clock.now())
    command, *options = change
    arguments = ("teams", command, "acme", cloud.user.email, *options)
    refusal = larder.refusal(*arguments)
    assert f"{cloud.user.email} is the only owner of acme" in refusal
    assert "larder teams add-member acme EMAIL --role OWNER" in refusal
    larder("teams", "add-member", "acme", "bob@acme.example", "--role", "OWNER")
    larder(*arguments)


def test_an_unknown_role_is_rejected(larder: Larder, cloud: Cloud) -> None:
    arguments = ("teams", "add-member", "acme", "ada@acme.example", "--role", "KING")
    assert "'KING' is not one of" in larder.refusal(*arguments, status=2)


def test_run_inputs_are_kept_until_they_are_turned_off(larder: Larder, cloud: Cloud) -> None:
    assert larder.json("teams", "show", "acme")["run_inputs"] == "names"
    assert larder.json("teams", "run-inputs", "acme", "off")["run_inputs"] == "off"
    assert larder.json("teams", "show", "acme")["run_inputs"] == "off"
    assert "'all' is not one of" in larder.refusal("teams", "run-inputs", "acme", "all", status=2)


def test_rename_changes_name_and_slug_and_keeps_the_former_slug(larder: Larder, cloud: Cloud) -> None:
    renamed = larder.json("teams", "rename", "acme", "--name", "Acme, Inc.", "--slug", "acme-inc")
    assert (renamed["id"], renamed["slug"], renamed["name"]) == (
        cloud.team.id, "acme-inc", "Acme, Inc.",
    )  # fmt: skip
    assert renamed["former_slugs"] == ["acme"]
    assert larder.json("teams", "show", "acme") == renamed
    assert put(cloud, "a1", b"x") == 202
    freed = larder.json("teams", "rename", "acme", "--free-former-slugs")
    assert freed["former_slugs"] == []
    assert "there is no team acme" in larder.refusal("teams", "show", "acme")
    assert put(cloud, "a1", b"x") == 403


def test_only_with_an_option_a_new_team_gets_the_slug_of_a_deleted_one(larder: Larder, cloud: Cloud) -> None:
    larder("teams", "delete", "acme", "--yes")
    create = ("teams", "create", "--name", "New", "--slug", "acme", "--owner", cloud.user.email)
    assert larder.refusal(*create) == "another team has the slug acme"
    made = larder.json(*create, "--reuse-slug")
    assert (made["slug"], larder.json("teams", "show", "acme")) == ("acme", made)


def test_rename_rejects_taken_and_invalid_values(larder: Larder, cloud: Cloud) -> None:
    larder("teams", "create", "--name", "Zed", "--slug", "zed", "--owner", "ada@acme.example")
    assert "nothing to change" in larder.refusal("teams", "rename", "acme", status=2)
    assert larder.refusal("teams", "rename", "acme", "--slug", "zed") == ("another team has the slug zed")
    assert larder.refusal("teams", "rename", "acme", "--slug", "No").startswith("slug: ")
    assert larder.refusal("teams", "rename", "acme", "--name", "\x1b").startswith("name: ")
    assert "there is no team nobody" in larder.refusal("teams", "rename", "nobody", "--slug", "x")


def test_delete_ends_all_access_to_the_team(larder: Larder, cloud: Cloud) -> None:
    assert put(cloud, "a1", b"x") == 202
    assert larder.json("teams", "delete", "acme", "--yes") == {
        "id": cloud.team.id, "slug": "acme", "deleted": True,
    }  # fmt: skip
    assert put(cloud, "a1", b"x") == 403
    assert [team_id for team_id, _ in deleted_teams()] == [cloud.team.id]
    assert "there is no team acme" in larder.refusal("teams", "delete", "acme", "--yes")


@pytest.mark.parametrize(("answer", "deleted"), [("y\n", True), ("n\n", False), ("", False)])
def test_delete_asks_for_confirmation(larder: Larder, cloud: Cloud, answer: str, deleted: bool) -> None:
    result = larder("teams", "delete", "acme", status=0 if deleted else 1, answer=answer)
    assert f"Delete acme ({cloud.team.id}), with its artifacts, keys and members?" in result.stderr
    assert put(cloud, "a1", b"x") == (403 if deleted else 202)


@pytest.fixture
def over_quota(request: pytest.FixtureRequest, option: SetOption) -> None:
    option("over_quota", request.param)


@pytest.mark.parametrize(
    ("over_quota", "effect"),
    [("evict", "evict what was used least recently"), ("refuse", "Uploads are refused")],
    indirect=["over_quota"],
)
@pytest.mark.usefixtures("over_quota")
def test_a_quota_below_what_is_stored_needs_a_yes(larder: Larder, cloud: Cloud, effect: str) -> None:
    assert put(cloud, "a1", b"x" * 3_000) == 202
    refused = larder("teams", "set", "acme", "--quota", "1kB", status=1)
    assert "acme stores 2.0 kB more than this quota" in refused.stderr
    assert effect in refused.stderr
    assert larder.json("teams", "show", "acme")["quota_bytes"] > 3_000
    larder("teams", "set", "acme", "--quota", "1kB", answer="y\n")
    assert larder.json("teams", "set", "acme", "--quota", "2kB", "--yes")["quota_bytes"] == 2_000


def test_invite_submits_an_email(larder: Larder, cloud: Cloud, mail_function: FakeAws, api_url: str) -> None:
    made = larder.json("teams", "invite", "acme", "eve@acme.example", "--role", "developer")
    assert (made["team"], made["email"], made["role"]) == ("acme", "eve@acme.example", "DEVELOPER")
    (job,) = (parse_job(json.loads(body)) for body in mail_function.bodies)
    assert isinstance(job, InviteToTeam)
    assert job.email == "eve@acme.example"
    assert (job.team_id, job.invitation_id) == (cloud.team.id, made["id"])
    assert job.mail_context.base_url == api_url
    (listed,) = larder.json("teams", "invitations", "acme")
    assert {**listed, "team": "acme"} == made
    shown = larder("teams", "invitations", "acme").stdout
    assert all(word in shown for word in ("DEVELOPER", "eve@acme.example", "UTC"))


def test_invite_rejects_an_invalid_address_role_or_team(larder: Larder, cloud: Cloud) -> None:
    refusal = larder.refusal("teams", "invite", "acme", "eve")
    assert refusal == "email: must be an email address"
    arguments = ("teams", "invite", "acme", "eve@acme.example", "--role", "KING")
    assert "'KING' is not one of" in larder.refusal(*arguments, status=2)
    assert "there is no team nobody" in larder.refusal("teams", "invite", "nobody", "eve@acme.example")


def test_an_invitation_can_be_withdrawn_by_address(larder: Larder, cloud: Cloud, mail_function: FakeAws) -> None:
    larder("teams", "invite", "acme", "eve@acme.example")
    assert larder.json("teams", "withdraw", "acme", "EVE@acme.example")["withdrawn"] is True
    assert larder.json("teams", "invitations", "acme") == []
    assert "larder teams invite acme" in larder("teams", "invitations", "acme").stdout
    refusal = larder.refusal("teams", "withdraw", "acme", "eve@acme.example")
    assert refusal == "acme has no open invitation for eve@acme.example"


def test_a_key_with_the_permission_manages_the_team(larder: Larder, cloud: Cloud) -> None:
    made = larder.json(*("keys", "create", "--user", "ada@acme.example", "--permissions", "teams=read,write"))
    reply = Sender(made["key"])("GET", "/v3/teams/acme/members")
    assert [member["email"] for member in reply.json["members"]] == ["ada@acme.example"]
