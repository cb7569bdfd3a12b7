"""GET /registration/verify"""

from collections.abc import Callable
from datetime import timedelta
from urllib.parse import quote

import pytest

from larder import aws, clock
from larder.accounts import repository as accounts
from larder.accounts.models import Account, ProfileChange, User
from larder.accounts.password_resets import issue_reset_token, reset_password
from larder.accounts.service import change_account, create_user, find_user, read_account, update_profile, with_password
from larder.accounts.sessions import revoke_sessions, start_session
from larder.api_keys.keys import delete_expired_keys, list_keys
from larder.hashing import hash_key
from larder.settings import settings
from larder.teams.members import add_member, remove_member
from larder.teams.models import Role
from larder.turbo_login import service as turbo_login
from larder.turbo_login.service import Grant
from tests.conftest import SetOption
from tests.functions.accounts.conftest import MAIL_CONTEXT
from tests.functions.api_keys.people import stored_keys
from tests.mailbox import Mailbox
from tests.requests import Cloud, Reply, Sender

TURBO = "Turbo CLI on laptop via SAML/OIDC Single Sign-On"
INVALID = (401, "invalid_login_code")


@pytest.fixture
def code(cloud: Cloud) -> str:
    """The code for the team `acme` that Ada's turbo client received."""
    return turbo_login.create_token(cloud.user, Grant(sso_team="acme"), now=clock.now()).text


def exchange(code: str, name: str = TURBO) -> Reply:
    query = f"token={quote(code, safe='')}&tokenName={quote(name, safe='')}"
    return Sender(None, query=query)("GET", "/registration/verify")


def refusal(reply: Reply) -> tuple[int, str]:
    return reply.status, reply.code


def test_a_code_is_exchanged_for_a_key_of_its_team(cloud: Cloud, code: str) -> None:
    reply = exchange(code)
    assert reply.status == 200
    assert reply.headers["cache-control"] == "no-store"
    assert reply.json.keys() == {"token", "teamId"}
    assert reply.json["teamId"] == cloud.team.id
    token = reply.json["token"]
    (key,) = (key for key in list_keys(cloud.user.id) if key.key_hash == hash_key(token))
    assert (key.name, key.team_id) == ("turbo on laptop", cloud.team.id)
    assert key.permissions == {"artifacts": ("read", "write")}
    assert key.expires_at is not None
    assert (key.expires_at - key.created_at).days == 90
    assert Sender(token)("GET", "/v2/user").json["user"]["email"] == "ada@acme.example"
    assert Sender(token, slug="acme")("GET", "/v8/artifacts/status").status == 200


def test_a_code_works_once(cloud: Cloud, code: str) -> None:
    assert exchange(code).status == 200
    assert refusal(exchange(code)) == INVALID
    assert len(stored_keys()) == 2


@pytest.mark.parametrize("code", ["", "short", "A" * 32, "A" * 64, "#clean-up", "\u00e4" * 32, "a\x00b", "x" * 5000])
def test_401_for_an_unknown_code(cloud: Cloud, code: str) -> None:
    assert refusal(exchange(code)) == INVALID


def test_401_without_a_code(cloud: Cloud) -> None:
    assert refusal(Sender(None)("GET", "/registration/verify")) == INVALID


def test_401_for_an_expired_code(cloud: Cloud) -> None:
    before = clock.now() - timedelta(seconds=turbo_login.CODE_SECONDS)
    late = turbo_login.create_token(cloud.user, Grant(sso_team="acme"), now=before).text
    assert refusal(exchange(late)) == INVALID


def test_expired_codes_are_deleted_with_expired_keys(cloud: Cloud, code: str) -> None:
    now = clock.now()
    assert delete_expired_keys(now=now) == 0
    assert delete_expired_keys(now=now + timedelta(seconds=turbo_login.CODE_SECONDS)) == 1
    assert refusal(exchange(code)) == INVALID


def test_a_user_who_has_left_the_team_gets_no_key(cloud: Cloud) -> None:
    bob = create_user("bob@acme.example", "Bob", now=clock.now())
    add_member(cloud.team.id, bob.id, Role.MEMBER, now=clock.now())
    code = turbo_login.create_token(bob, Grant(sso_team="acme"), now=clock.now()).text
    remove_member(cloud.team.id, bob.id, by=None)
    assert refusal(exchange(code)) == (403, "not_a_team_member")
    assert len(stored_keys()) == 1


def test_a_deleted_user_gets_no_key(cloud: Cloud, code: str) -> None:
    assert accounts.delete(read_account(cloud.user.id), now=clock.now())
    assert refusal(exchange(code)) == INVALID
    assert len(stored_keys()) == 1


def reset(user: User) -> None:
    now = clock.now()
    token = issue_reset_token(user, now=now)
    reset_password(token, "another correct horse", MAIL_CONTEXT, now=now)


def reset_without_ending_sessions(user: User) -> None:
    """Where `RevokeSessionsOnPasswordReset` is false."""

    def another(account: Account) -> Account:
        return with_password(account, "a hash", ends_sessions=False, now=clock.now())

    change_account(user.id, another)


def end_other_sessions(user: User) -> None:
    session, _ = start_session(user, now=clock.now())
    revoke_sessions(user.id, kept=session)


@pytest.mark.parametrize(
    "taken_back",
    [reset, reset_without_ending_sessions, lambda user: revoke_sessions(user.id), end_other_sessions],
    ids=["reset", "another password", "end of all sessions", "end of the others"],
)
def test_a_code_ends_when_the_user_secures_the_account(
    cloud: Cloud, code: str, mailbox: Mailbox, taken_back: Callable[[User], None]
) -> None:
    """Someone who took over the session can have the code too."""
    taken_back(cloud.user)
    assert refusal(exchange(code)) == INVALID
    assert len(stored_keys()) == 1
    again = find_user(cloud.user.id)
    assert again is not None
    assert exchange(turbo_login.create_token(again, Grant(sso_team="acme"), now=clock.now()).text).status == 200


def test_a_code_issued_while_its_session_was_revoked_is_invalid(cloud: Cloud) -> None:
    """The request read the user before the revocation."""
    found = cloud.user
    revoke_sessions(found.id)
    assert refusal(exchange(turbo_login.create_token(found, Grant(sso_team="acme"), now=clock.now()).text)) == INVALID


def test_a_code_stays_valid_after_the_user_is_renamed(cloud: Cloud, code: str) -> None:
    update_profile(cloud.user, ProfileChange(name="Lovelace"), now=clock.now())
    assert exchange(code).status == 200


def test_a_code_issued_by_version_0_1_0_can_be_exchanged(cloud: Cloud, code: str) -> None:
    aws.dynamodb().update_item(
        TableName=settings().api_keys_table,
        Key=aws.serialize({"key_hash": f"#login-code#{hash_key(code)}"}),
        UpdateExpression="REMOVE login_password_version, login_session_generation",
    )
    assert exchange(code).status == 200


@pytest.mark.parametrize(
    ("client_name", "name"),
    [
        ("Turbo CLI on laptop via SAML/OIDC Single Sign-On", "turbo on laptop"),
        ("Turbo CLI on laptop", "turbo on laptop"),
        ("Turbo CLI on a via b via c", "turbo on a"),
        ("Turbo CLI on " + "x" * 300 + " via y", "turbo on " + "x" * 23),
        ("Turbo CLI on \u65e5\u672c via y", "turbo on \u65e5\u672c"),
        ("Turbo CLI on a\x1b[31m via y", "turbo on this computer"),
        ("something else", "turbo on this computer"),
        ("", "turbo on this computer"),
    ],
)
def test_the_key_is_named_after_the_computer(cloud: Cloud, code: str, client_name: str, name: str) -> None:
    assert exchange(code, client_name).status == 200
    assert {key.name for key in list_keys(cloud.user.id)} == {"ci", name}


def test_429_for_an_address_with_many_attempts(cloud: Cloud, code: str, option: SetOption) -> None:
    option("http_rate_limit_enabled", "true")
    replies = [exchange("A" * 32) for _ in range(11)]
    assert [reply.status for reply in replies] == [401] * 10 + [429]
    assert replies[-1].code == "too_many_requests"
    # The code stays valid: the client waits and retries.
    assert exchange(code).status == 429
    option("http_rate_limit_enabled", "false")
    assert exchange(code).status == 200


def test_sessions_and_keys_of_the_request_are_ignored(cloud: Cloud, code: str) -> None:
    sender = Sender(cloud.token, query=f"token={'A' * 32}&tokenName=x")
    assert refusal(sender("GET", "/registration/verify")) == INVALID


def test_code_and_key_are_in_no_log_and_no_table(
    cloud: Cloud, code: str, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    stored = str(aws.dynamodb().scan(TableName=settings().api_keys_table)["Items"])
    assert hash_key(code) in stored
    token = exchange(code).json["token"]
    assert refusal(exchange(code)) == INVALID
    stored += str(aws.dynamodb().scan(TableName=settings().api_keys_table)["Items"])
    seen = capsys.readouterr().out + caplog.text
    assert "answered" in seen
    for secret in (code, token):
        assert secret not in seen + stored
