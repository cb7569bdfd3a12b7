"""`larder users`."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from larder import clock
from larder.accounts import repository as accounts
from larder.accounts.email_jobs import EmailWasChanged, parse_job
from larder.accounts.email_links import follow_verification_token
from larder.accounts.link_tokens import issue_verification_token
from larder.accounts.models import User
from larder.accounts.password_resets import issue_reset_token, reset_password
from larder.accounts.service import (
    check_credentials,
    create_user,
    delete_user,
    deleted_users,
    find_user,
    find_user_by_email,
    read_account,
)
from larder.accounts.sessions import find_session, start_session
from larder.api_keys.keys import create_key, list_keys
from larder.api_keys.properties import NewKey
from larder.errors import (
    InvalidEmailOrPassword,
    InvalidLinkToken,
    InvalidLoginCode,
    InvalidVerificationToken,
    TryAgain,
    VerifiedUserNotFound,
)
from larder.teams.members import add_member, remove_member, role_of
from larder.teams.models import Role
from larder.teams.teams import create_team
from larder.turbo_login import service as turbo_login
from larder_cli.main import cli
from tests.conftest import SetOption
from tests.functions.accounts.conftest import MAIL_CONTEXT
from tests.requests import Cloud, Sender, invoke

from .conftest import Larder
from .fake_aws import FakeAws


def user_of(email: str) -> User:
    user = find_user_by_email(email)
    assert user is not None
    return user


def test_create_adds_a_user_and_prints_the_id(larder: Larder) -> None:
    output = larder.json("users", "create", "--email", "Ada@Acme.example", "--name", "Ada")
    stored = find_user_by_email("ada@acme.example")
    assert stored is not None
    assert output["id"] == stored.id
    assert (output["email"], output["name"]) == ("ada@acme.example", "Ada")
    assert output["created_at"].endswith("Z")


def test_show_matches_the_output_of_create(larder: Larder) -> None:
    output = larder.json("users", "create", "--email", "ada@acme.example", "--name", "Ada")
    shown = larder.json("users", "show", "ada@acme.example")
    assert {name: shown[name] for name in output} == output


def test_list_shows_all_users_largest_first(larder: Larder, cloud: Cloud, personal: Sender) -> None:
    bob = create_user("bob@acme.example", "Bob", email_verified=True, now=clock.now())
    eve = create_user("eve@acme.example", "Eve", now=clock.now())
    own = Sender(create_key(NewKey(user_id=eve.id), now=clock.now())[1])
    assert own("PUT", "/v8/artifacts/e1", body=b"x" * 1500).status == 202
    assert own("PUT", "/v8/artifacts/e2", body=b"x" * 500).status == 202
    assert personal("PUT", "/v8/artifacts/abc", body=b"12345").status == 202
    # A team's artifacts do not count for its members.
    assert cloud.send("PUT", "/v8/artifacts/t1", body=b"x" * 9000).status == 202
    output = larder.json("users", "list")
    assert [(one["email"], one["id"], one["stored_bytes"], one["artifacts"]) for one in output] == [
        ("eve@acme.example", eve.id, 2000, 2),
        (cloud.user.email, cloud.user.id, 5, 1),
        ("bob@acme.example", bob.id, 0, 0),
    ]
    assert [one["email_verified"] for one in output if one["id"] in (bob.id, eve.id)] == [False, True]
    assert all(one["created_at"].endswith("Z") for one in output)
    shown = larder("users", "list").stdout
    assert all(word in shown for word in ("eve@acme.example", eve.id, "2.0 kB", "UTC"))


def test_list_reads_more_users_than_one_batch(larder: Larder) -> None:
    for number in range(103):
        create_user(f"user{number:03}@acme.example", "User", now=clock.now())
    output = larder.json("users", "list")
    assert [one["email"] for one in output] == [f"user{n:03}@acme.example" for n in range(103)]


def test_list_shows_no_sessions_or_passwords(larder: Larder, cloud: Cloud) -> None:
    bob = create_user("bob@acme.example", "Bob", password="a long password", now=clock.now())
    start_session(bob, now=clock.now())
    output = larder.json("users", "list")
    assert sorted(one["email"] for one in output) == [cloud.user.email, "bob@acme.example"]
    assert all("password" not in name for one in output for name in one)


def test_list_says_when_there_are_no_users(larder: Larder) -> None:
    assert "larder users create" in larder("users", "list").stdout
    assert larder.json("users", "list") == []


def test_show_prints_the_users_cache_without_a_team(larder: Larder, cloud: Cloud, personal: Sender) -> None:
    assert personal("PUT", "/v8/artifacts/abc", body=b"12345").status == 202
    shown = larder.json("users", "show", cloud.user.email)
    assert (shown["stored_bytes"], shown["artifacts"], shown["quota_bytes"]) == (5, 1, 5 * 10**9)
    assert (shown["caching"], shown["status"], shown["block"]) == ("enabled", "enabled", None)


@pytest.mark.usefixtures("refusing")
def test_quota_block_and_caching_of_a_user_do_not_affect_the_team(
    larder: Larder, cloud: Cloud, personal: Sender
) -> None:
    person = ("users", "set", cloud.user.email)
    assert larder.json(*person, "--quota", "4B")["quota_bytes"] == 4
    assert personal("PUT", "/v8/artifacts/abc", body=b"12345").code == "remote_caching_over_limit"
    assert larder.json(*person, "--default-quota", "--caching", "paused")["status"] == "paused"
    assert personal("GET", "/v8/artifacts/abc").code == "remote_caching_paused"
    output = larder.json(*person, "--block", "soft_block", "--reason", "ask Eve")
    assert (output["block"], output["block_reason"], output["caching"]) == ("soft_block", "ask Eve", "paused")
    assert personal("GET", "/v8/artifacts/abc").message == "This account is blocked: ask Eve"
    assert cloud.send("GET", "/v8/artifacts/status").json == {"status": "enabled"}
    output = larder.json(*person, "--unblock", "--caching", "enabled")
    assert (output["block"], output["block_reason"]) == (None, None)
    assert personal("PUT", "/v8/artifacts/abc", body=b"12345").status == 202


def test_set_needs_a_change_and_an_existing_user(larder: Larder, cloud: Cloud) -> None:
    refusal = larder.refusal("users", "set", cloud.user.email, status=2)
    assert "nothing to change" in refusal
    refusal = larder.refusal("users", "set", "nobody@acme.example", "--unblock")
    assert "there is no user nobody@acme.example" in refusal


def test_the_table_shows_every_field(larder: Larder) -> None:
    shown = larder("users", "create", "--email", "ada@acme.example", "--name", "Ada").stdout
    for expected in ("id", "email", "ada@acme.example", "name", "Ada", "created", "UTC"):
        assert expected in shown


def test_a_name_cannot_write_to_the_terminal(larder: Larder) -> None:
    larder("users", "create", "--email", "ada@acme.example", "--name", "Ada")
    ada = find_user_by_email("ada@acme.example")
    assert ada is not None
    account = read_account(ada.id)
    # Version 0.1.0 accepted such a name.
    name = "A\x9b31mda [bold]x[/bold] :smile:"
    assert accounts.change(account, replace(account, user=replace(account.user, name=name)))
    shown = larder("users", "show", "ada@acme.example").stdout
    assert "31mda" in shown
    assert "\x9b" not in shown
    assert "[bold]x[/bold] :smile:" in shown


def test_an_address_belongs_to_one_user(larder: Larder) -> None:
    larder("users", "create", "--email", "ada@acme.example", "--name", "Ada")
    refusal = larder.refusal("users", "create", "--email", "ADA@acme.example", "--name", "Eve")
    assert refusal == "another user has the address ada@acme.example"


def test_an_invalid_address_or_name_is_rejected(larder: Larder) -> None:
    refusal = larder.refusal("users", "create", "--email", "ada", "--name", "Ada")
    assert refusal == "email: must be an email address"
    refusal = larder.refusal("users", "create", "--email", "ada@acme.example", "--name", " ")
    assert refusal == "name: must have 1 to 100 characters and no control characters"


def test_an_unknown_address_suggests_the_create_command(larder: Larder) -> None:
    refusal = larder.refusal("users", "show", "nobody@acme.example")
    assert "there is no user nobody@acme.example" in refusal
    assert "larder users create --email nobody@acme.example" in refusal


def test_a_missing_option_is_a_usage_error(larder: Larder) -> None:
    assert "'--name'" in larder.refusal("users", "create", "--email", "a@b.example", status=2)


def test_delete_deletes_the_account_with_sessions_keys_and_memberships(
    larder: Larder, cloud: Cloud, option: SetOption
) -> None:
    option("enable_delete_user", "false")  # this setting only affects users themselves
    bob = create_user("bob@acme.example", "Bob", now=clock.now())
    add_member(cloud.team.id, bob.id, Role.MEMBER, now=clock.now())
    _, session = start_session(bob, now=clock.now())
    _, own = create_key(NewKey(user_id=bob.id), now=clock.now())
    _, bound = create_key(NewKey(user_id=bob.id, team_id=cloud.team.id), now=clock.now())
    assert Sender(own)("PUT", "/v8/artifacts/b1", body=b"12345").status == 202
    assert larder.json("users", "delete", "BOB@acme.example", "--yes") == {
        "id": bob.id, "email": "bob@acme.example", "deleted": True, "keys_deleted": 2,
    }  # fmt: skip
    assert find_session(session, now=clock.now()) is None
    for token in (session, own, bound):
        assert Sender(token)("GET", "/v8/artifacts/status").status == 401
    assert role_of(cloud.team.id, bob.id) is None
    # The hourly function deletes the rest of these users' data.
    assert [user_id for user_id, _ in deleted_users()] == [bob.id]
    invoke("accounts.sweep_deleted_users.handler", {})
    assert larder.json("artifacts", "list", cloud.user.email) == []
    assert "there is no user" in larder.refusal("users", "delete", "bob@acme.example", "--yes")


def test_delete_says_when_the_rest_is_deleted_and_prints_the_id(larder: Larder) -> None:
    bob = create_user("bob@acme.example", "Bob", now=clock.now())
    shown = larder("users", "delete", "bob@acme.example", "--yes").stdout
    assert "within the hour" in shown
    assert f"larder artifacts delete TEAM --writer {bob.id}" in shown


@pytest.mark.parametrize(("answer", "deleted"), [("y\n", True), ("n\n", False), ("", False)])
def test_delete_asks_for_confirmation(larder: Larder, answer: str, deleted: bool) -> None:
    bob = create_user("bob@acme.example", "Bob", now=clock.now())
    arguments = [*larder.target, "users", "delete", "bob@acme.example"]
    result = CliRunner().invoke(cli, arguments, input=answer, prog_name="larder")
    assert f"Delete bob@acme.example ({bob.id}), with their sessions" in result.stderr
    assert result.exit_code == (0 if deleted else 1)
    assert (find_user(bob.id) is None) == deleted


def test_delete_refuses_the_only_owner_of_a_team_and_suggests_commands(larder: Larder, cloud: Cloud) -> None:
    create_team("Beta", "beta", owner_user_id=cloud.user.id, now=clock.now())
    # Without --yes: the refusal comes before the question.
    refusal = larder.refusal("users", "delete", cloud.user.email)
    assert f"{cloud.user.email} is the only owner of acme, beta" in refusal
    assert "larder teams add-member acme EMAIL --role OWNER" in refusal
    assert "larder teams delete acme" in refusal
    assert find_user(cloud.user.id) == cloud.user
    assert cloud.send("GET", "/v8/artifacts/status").status == 200
    bob = create_user("bob@acme.example", "Bob", email_verified=True, now=clock.now())
    larder("teams", "add-member", "acme", bob.email, "--role", "OWNER")
    larder("teams", "delete", "beta", "--yes")
    assert larder.json("users", "delete", cloud.user.email, "--yes")["deleted"] is True
    assert role_of(cloud.team.id, bob.id) is Role.OWNER


def test_delete_checks_owners_again_after_the_confirmation(
    larder: Larder, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    bob = create_user("bob@acme.example", "Bob", now=clock.now())
    add_member(cloud.team.id, bob.id, Role.OWNER, now=clock.now())

    def answered_late(*_: object, **__: object) -> bool:
        remove_member(cloud.team.id, bob.id, by=None)
        return True

    monkeypatch.setattr("click.confirm", answered_late)
    refusal = larder.refusal("users", "delete", cloud.user.email)
    assert "is the only owner of acme" in refusal
    assert find_user(cloud.user.id) == cloud.user


def test_delete_reports_a_user_deleted_during_the_confirmation(larder: Larder, monkeypatch: pytest.MonkeyPatch) -> None:
    bob = create_user("bob@acme.example", "Bob", now=clock.now())

    def answered_late(*_: object, **__: object) -> bool:
        delete_user(bob.id, now=clock.now())
        return True

    monkeypatch.setattr("click.confirm", answered_late)
    refusal = larder.refusal("users", "delete", "bob@acme.example")
    assert refusal == "bob@acme.example has already been deleted: nothing was changed"


def test_an_interrupted_delete_says_what_may_remain(
    larder: Larder, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    bob = create_user("bob@acme.example", "Bob", now=clock.now())
    add_member(cloud.team.id, bob.id, Role.MEMBER, now=clock.now())
    create_key(NewKey(user_id=bob.id), now=clock.now())

    def silent(_: str) -> int:
        raise TryAgain

    with monkeypatch.context() as patched:
        patched.setattr("larder.api_keys.keys.delete_keys_of", silent)
        refusal = larder.refusal("users", "delete", "bob@acme.example", "--yes")
    assert refusal.startswith("bob@acme.example is deleted and their sessions have ended, but keys")
    assert "AWS did not answer in time" in refusal
    assert f"SweepDeletedUsers function deletes them. The user's id is {bob.id}" in refusal
    assert find_user(bob.id) is None
    invoke("accounts.sweep_deleted_users.handler", {})
    assert list_keys(bob.id) == []
    assert role_of(cloud.team.id, bob.id) is None


def test_delete_says_when_a_membership_may_remain(larder: Larder, monkeypatch: pytest.MonkeyPatch) -> None:
    bob = create_user("bob@acme.example", "Bob", now=clock.now())
    monkeypatch.setattr("larder.teams.members.leave_teams", lambda _: False)
    refusal = larder.refusal("users", "delete", "bob@acme.example", "--yes")
    assert "keys or memberships may remain" in refusal
    assert find_user(bob.id) is None


def test_end_sessions_also_ends_change_links_and_login_codes(larder: Larder, cloud: Cloud) -> None:
    bob = create_user("bob@acme.example", "Bob", password="a long password", now=clock.now())
    add_member(cloud.team.id, bob.id, Role.MEMBER, now=clock.now())
    tokens = [start_session(bob, now=clock.now())[1] for _ in range(2)]
    _, another = start_session(cloud.user, now=clock.now())
    link = issue_verification_token(bob, new_email="eve@acme.example", now=clock.now())
    code = turbo_login.create_token(bob, turbo_login.Grant(sso_team="acme"), now=clock.now()).text
    assert larder.json("users", "end-sessions", "BOB@acme.example") == {
        "id": bob.id, "email": "bob@acme.example", "sessions_ended": True,
    }  # fmt: skip
    assert [find_session(token, now=clock.now()) for token in tokens] == [None, None]
    assert find_session(another, now=clock.now()) is not None
    with pytest.raises(InvalidVerificationToken):
        follow_verification_token(link, MAIL_CONTEXT, now=clock.now())
    with pytest.raises(InvalidLoginCode):
        turbo_login.exchange_code(code, "Turbo CLI", now=clock.now())
    assert check_credentials("bob@acme.example", "a long password").id == bob.id


def test_end_sessions_keeps_keys_and_says_how_to_revoke_them(larder: Larder) -> None:
    bob = create_user("bob@acme.example", "Bob", now=clock.now())
    _, key = create_key(NewKey(user_id=bob.id), now=clock.now())
    shown = larder("users", "end-sessions", "bob@acme.example").stdout
    assert "larder keys list --user bob@acme.example" in shown
    assert "larder keys revoke" in shown
    assert Sender(key)("GET", "/v8/artifacts/status").status == 200


def test_end_sessions_rejects_an_unknown_user(larder: Larder) -> None:
    refusal = larder.refusal("users", "end-sessions", "nobody@acme.example")
    assert "there is no user nobody@acme.example" in refusal


@pytest.fixture
def stolen(cloud: Cloud) -> User:
    """An account with the thief's address and the thief's password."""
    thief = create_user("thief@evil.example", "Bob", password="the thief's own", email_verified=True, now=clock.now())
    add_member(cloud.team.id, thief.id, Role.MEMBER, now=clock.now())
    return thief


CHANGE = ("users", "change-email", "thief@evil.example", "Bob@acme.example")


def test_change_email_returns_an_account_to_the_owner_of_the_new_address(
    larder: Larder, stolen: User, mail_function: FakeAws
) -> None:
    assert larder.json(*CHANGE) == {
        "id": stolen.id,
        "email": "bob@acme.example",
        "former_email": "thief@evil.example",
        "email_verified": False,
        "former_email_notified": True,
    }
    assert find_user_by_email("thief@evil.example") is None
    token = issue_reset_token(user_of("bob@acme.example"), now=clock.now())
    reset_password(token, "Bob's own again", MAIL_CONTEXT, now=clock.now())
    bob = check_credentials("bob@acme.example", "Bob's own again")
    assert (bob.id, bob.email_verified) == (stolen.id, True)


def test_change_email_ends_all_access_of_the_thief(larder: Larder, stolen: User, mail_function: FakeAws) -> None:
    now = clock.now()
    _, session = start_session(stolen, now=now)
    verification = issue_verification_token(stolen, now=now)
    change = issue_verification_token(stolen, new_email="other@evil.example", now=now)
    reset = issue_reset_token(stolen, now=now)
    code = turbo_login.create_token(stolen, turbo_login.Grant(sso_team="acme"), now=now).text
    larder(*CHANGE)
    assert find_session(session, now=now) is None
    for email in ("thief@evil.example", "bob@acme.example"):
        with pytest.raises(InvalidEmailOrPassword):
            check_credentials(email, "the thief's own")
    with pytest.raises(VerifiedUserNotFound):
        follow_verification_token(verification, MAIL_CONTEXT, now=now)
    with pytest.raises(InvalidVerificationToken):
        follow_verification_token(change, MAIL_CONTEXT, now=now)
    with pytest.raises(InvalidLinkToken):
        reset_password(reset, "the thief's next", MAIL_CONTEXT, now=now)
    with pytest.raises(InvalidLoginCode):
        turbo_login.exchange_code(code, "Turbo CLI", now=now)
    assert user_of("bob@acme.example").email_verified is False


def test_change_email_keeps_keys_and_memberships_and_says_how_to_revoke_keys(
    larder: Larder, cloud: Cloud, stolen: User, mail_function: FakeAws
) -> None:
    _, key = create_key(NewKey(user_id=stolen.id), now=clock.now())
    shown = larder(*CHANGE).stdout
    assert "larder keys list --user bob@acme.example" in shown
    assert "larder keys revoke" in shown
    assert "must request a password reset" in shown
    assert Sender(key)("GET", "/v8/artifacts/status").status == 200
    assert role_of(cloud.team.id, stolen.id) is Role.MEMBER


def test_change_email_notifies_the_former_address(
    larder: Larder, stolen: User, mail_function: FakeAws, api_url: str
) -> None:
    larder(*CHANGE)
    (job,) = (parse_job(json.loads(body)) for body in mail_function.bodies)
    assert isinstance(job, EmailWasChanged)
    assert job.email == "thief@evil.example"
    assert (job.user_id, job.new_email) == (stolen.id, "bob@acme.example")
    assert (job.mail_context.base_url, job.by_operator) == (api_url, True)


def test_change_email_to_another_spelling_sends_no_notice(larder: Larder, mail_function: FakeAws) -> None:
    create_user("stra\u00dfe@acme.example", "Bob", now=clock.now())
    output = larder.json("users", "change-email", "strasse@acme.example", "strasse@acme.example")
    assert (output["email"], output["former_email_notified"]) == ("strasse@acme.example", False)
    assert mail_function.bodies == []


def test_change_email_succeeds_if_the_notice_cannot_be_sent(
    larder: Larder, stolen: User, mail_function: FakeAws
) -> None:
    mail_function.status = 403
    result = larder(*CHANGE, "--json")
    assert json.loads(result.stdout)["former_email_notified"] is False
    assert "Warning: could not notify thief@evil.example: " in result.stderr
    assert user_of("bob@acme.example").id == stolen.id


def test_change_email_rejects_a_taken_unchanged_or_invalid_address(
    larder: Larder, cloud: Cloud, stolen: User, mail_function: FakeAws
) -> None:
    thief = ("users", "change-email", "thief@evil.example")
    refusal = larder.refusal(*thief, cloud.user.email.upper())
    assert refusal == f"another user has the address {cloud.user.email}"
    refusal = larder.refusal(*thief, "THIEF@evil.example")
    assert refusal.startswith("the user already has the address thief@evil.example")
    assert "larder users end-sessions thief@evil.example" in refusal
    assert larder.refusal(*thief, "bob") == "email: must be an email address"
    refusal = larder.refusal("users", "change-email", "nobody@acme.example", "bob@acme.example")
    assert "there is no user nobody@acme.example" in refusal
    assert find_user(stolen.id) == stolen
    assert check_credentials("thief@evil.example", "the thief's own") == stolen
    assert mail_function.bodies == []
