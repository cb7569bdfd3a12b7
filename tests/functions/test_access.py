"""Who may do what: every endpoint against every kind of caller and every state of a team. The tables are the contract
(design: who may do what); turbo acts on the codes.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from larder import clock
from larder.accounts import repository as accounts
from larder.accounts.models import User
from larder.accounts.service import create_user, read_account
from larder.accounts.sessions import end_sessions, start_session
from larder.api_keys import repository as key_store
from larder.api_keys.models import NewKey, Permissions
from larder.api_keys.service import create_key, revoke_key
from larder.teams.models import Block, CachingStatus, Role
from larder.teams.service import add_member, change_state, create_team, remove_member
from tests.direct_uploads import PREFLIGHT
from tests.requests import Cloud, Reply, Sender

ENDPOINTS = ["PUT", "preflight", "GET", "HEAD", "query", "events", "status"]
SESSION = "4f9d1c1e-6a5b-4d4e-9c57-0a2f6d1e8b11"


def ask(send: Sender, endpoint: str) -> Reply:
    match endpoint:
        case "PUT":
            return send("PUT", "/v8/artifacts/abc", body=b"artifact")
        case "preflight":
            return send("OPTIONS", "/v8/artifacts/abc", headers=PREFLIGHT)
        case "GET" | "HEAD":
            return send(endpoint, "/v8/artifacts/abc")
        case "query":
            return send("POST", "/v8/artifacts", json_body={"hashes": ["abc"]})
        case "events":
            event = {"sessionId": SESSION, "source": "LOCAL", "event": "HIT", "hash": "abc"}
            return send("POST", "/v8/artifacts/events", json_body=[event])
        case _:
            return send("GET", "/v8/artifacts/status")


SUCCESS = {
    "PUT": 202,
    "preflight": 204,
    "GET": 200,
    "HEAD": 200,
    "query": 200,
    "events": 200,
    "status": 200,
}


@pytest.fixture
def stored(cloud: Cloud) -> Cloud:
    """The team has an artifact `abc`."""
    assert ask(cloud.send, "PUT").status == 202
    return cloud


def outcome(reply: Reply) -> tuple[int, str]:
    return reply.status, reply.code if reply.status >= 400 else ""


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_members_key_for_the_team_passes(stored: Cloud, endpoint: str) -> None:
    assert ask(stored.send, endpoint).status == SUCCESS[endpoint]


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer short",
        f"Basic {'a' * 64}",
        f"Bearer {'a' * 64} {'a' * 64}",
        f"Bearer {'é' * 64}",
        f"Bearer {'a' * 257}",
    ],
)
def test_401_without_a_well_formed_token(
    stored: Cloud, endpoint: str, authorization: str | None
) -> None:
    reply = ask(Sender(None, slug="acme", authorization=authorization), endpoint)
    assert outcome(reply) == (401, "unauthorized")
    assert reply.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("kind", ["unknown", "revoked", "disabled", "expired"])
def test_401_for_a_key_that_is(stored: Cloud, endpoint: str, kind: str) -> None:
    now = clock.now()
    new = NewKey(user_id=stored.user.id, expires_in_s=60)
    key, token = create_key(new, now=now - timedelta(hours=1) if kind == "expired" else now)
    if kind == "unknown":
        token = token[:-1] + ("a" if token[-1] != "a" else "b")
    if kind == "revoked":
        assert ask(Sender(token, slug="acme"), endpoint).status == SUCCESS[endpoint]
        assert revoke_key(key.id)
    if kind == "disabled":
        key_store.delete(key.key_hash)
        key_store.add(replace(key, enabled=False))
    assert outcome(ask(Sender(token, slug="acme"), endpoint)) == (401, "unauthorized")


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_403_for_a_stranger_to_the_team(stored: Cloud, stranger: Sender, endpoint: str) -> None:
    assert outcome(ask(stranger, endpoint)) == (403, "not_a_team_member")
    by_id = Sender(stranger.token, team_id=stored.team.id)
    assert outcome(ask(by_id, endpoint)) == (403, "not_a_team_member")


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_team_that_does_not_exist_looks_like_one_that_is_not_ours(
    stored: Cloud, personal: Sender, endpoint: str
) -> None:
    for unknown in (
        Sender(personal.token, slug="no-such-team"),
        Sender(personal.token, team_id="team_doesnotexist"),
    ):
        assert outcome(ask(unknown, endpoint)) == (403, "not_a_team_member")


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_403_for_a_key_that_is_bound_to_another_team(stored: Cloud, endpoint: str) -> None:
    other = create_team("Other", "other", owner_user_id=stored.user.id, now=clock.now())
    for sender in (Sender(stored.token, slug="other"), Sender(stored.token, team_id=other.id)):
        assert outcome(ask(sender, endpoint)) == (403, "not_a_team_member")


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize(
    "query", ["teamId=acme", "teamId=team_", "teamId=team_a%2Fb", "teamId=team_a&teamId=team_b",
              "slug=Acme", "slug=a_b", "slug=-a", "slug=" + "a" * 49, "slug=acme&slug=acme",
              "slug=%F0%9F%98%80", "slug=acme%00"],
)  # fmt: skip
def test_400_for_a_bad_team_in_the_query(stored: Cloud, endpoint: str, query: str) -> None:
    assert outcome(ask(Sender(stored.token, query=query), endpoint)) == (400, "bad_request")


def test_a_key_bound_to_a_team_acts_for_it_when_none_is_named(stored: Cloud) -> None:
    assert ask(Sender(stored.token), "GET").status == 200


def test_the_id_decides_when_id_and_slug_are_both_sent(stored: Cloud) -> None:
    both = Sender(stored.token, slug="renamed-since", team_id=stored.team.id)
    assert ask(both, "GET").status == 200


NO, READ, WRITE = "missing_permission", "read_only", ""


@pytest.mark.parametrize(
    ("permissions", "refused"),
    [
        ({"artifacts": ("read", "write")}, {}),
        ({"artifacts": ("read",)}, {"PUT": READ, "preflight": READ}),
        ({"artifacts": ("write",)}, {"GET": NO, "HEAD": NO, "query": NO}),
        ({}, dict.fromkeys(["GET", "HEAD", "query", "PUT", "preflight"], NO)),
        (
            {"teams": ("read", "write")},
            dict.fromkeys(["GET", "HEAD", "query", "PUT", "preflight"], NO),
        ),
    ],
    ids=["read and write", "read", "write", "none", "of something else"],
)
@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_key_does_what_its_permissions_say(
    stored: Cloud, endpoint: str, permissions: Permissions, refused: dict[str, str]
) -> None:
    new = NewKey(user_id=stored.user.id, permissions=permissions)
    token = create_key(new, now=clock.now())[1]
    expected = (403, refused[endpoint]) if endpoint in refused else (SUCCESS[endpoint], "")
    assert outcome(ask(Sender(token, slug="acme"), endpoint)) == expected


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_every_role_reads_and_all_but_viewers_write(
    stored: Cloud, role: Role, endpoint: str
) -> None:
    now = clock.now()
    member = create_user("member@acme.example", "Member", now=now)
    add_member(stored.team.id, member.id, role, now=now)
    sender = Sender(create_key(NewKey(user_id=member.id), now=now)[1], slug="acme")
    writes = endpoint in ("PUT", "preflight")
    expected = (403, "read_only") if role is Role.VIEWER and writes else (SUCCESS[endpoint], "")
    assert outcome(ask(sender, endpoint)) == expected


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_leaving_a_team_takes_effect_at_the_next_request(stored: Cloud, endpoint: str) -> None:
    now = clock.now()
    member = create_user("member@acme.example", "Member", now=now)
    sender = Sender(create_key(NewKey(user_id=member.id), now=now)[1], slug="acme")
    assert ask(sender, endpoint).status == 403
    add_member(stored.team.id, member.id, Role.MEMBER, now=now)
    assert ask(sender, endpoint).status == SUCCESS[endpoint]
    remove_member(stored.team.id, member.id)
    assert outcome(ask(sender, endpoint)) == (403, "not_a_team_member")


# Session tokens, which have 32 characters, in place of keys -------------------------------------


def session_of(user: User, **properties: Any) -> Sender:
    token = start_session(user, now=properties.pop("since", clock.now()))[1]
    return Sender(token, **properties)


@pytest.mark.parametrize("again", [False, True], ids=["first", "known"])
@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_members_session_acts_for_the_team_that_it_names(
    stored: Cloud, endpoint: str, again: bool
) -> None:
    for send in (
        session_of(stored.user, slug="acme"),
        session_of(stored.user, team_id=stored.team.id),
    ):
        for _ in range(1 + again):
            assert ask(send, endpoint).status == SUCCESS[endpoint]


def test_without_a_team_a_session_acts_for_its_user(stored: Cloud) -> None:
    send = session_of(stored.user)
    assert ask(send, "PUT").status == 202
    assert ask(send, "GET").status == 200
    assert ask(session_of(stored.user, slug="acme"), "GET").status == 200


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_session_does_what_the_role_allows(stored: Cloud, role: Role, endpoint: str) -> None:
    now = clock.now()
    member = create_user("member@acme.example", "Member", now=now)
    add_member(stored.team.id, member.id, role, now=now)
    writes = endpoint in ("PUT", "preflight")
    expected = (403, "read_only") if role is Role.VIEWER and writes else (SUCCESS[endpoint], "")
    assert outcome(ask(session_of(member, slug="acme"), endpoint)) == expected


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("kind", ["unknown", "expired", "ended", "of a deleted user"])
@pytest.mark.parametrize("slug", ["acme", "nobody", None])
def test_401_for_a_session_that_is(
    stored: Cloud, endpoint: str, kind: str, slug: str | None
) -> None:
    since = clock.now() - timedelta(days=8) if kind == "expired" else clock.now()
    send = session_of(stored.user, slug=slug, since=since)
    match kind:
        case "unknown":
            send = Sender("A" * 32, slug=slug)
        case "ended":
            assert ask(replace(send, slug="acme"), endpoint).status == SUCCESS[endpoint]
            end_sessions(stored.user.id)
        case "of a deleted user":
            assert ask(replace(send, slug="acme"), endpoint).status == SUCCESS[endpoint]
            assert accounts.remove(read_account(stored.user.id), now=clock.now())
    assert outcome(ask(send, endpoint)) == (401, "unauthorized")


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_403_for_the_session_of_a_stranger_to_the_team(stored: Cloud, endpoint: str) -> None:
    mallory = create_user("mallory@elsewhere.example", "Mallory", now=clock.now())
    for team in ({"slug": "acme"}, {"team_id": stored.team.id}, {"slug": "nobody"}):
        assert outcome(ask(session_of(mallory, **team), endpoint)) == (403, "not_a_team_member")


@pytest.mark.parametrize("length", [31, 33, 63])
def test_401_for_a_token_of_no_known_length(stored: Cloud, length: int) -> None:
    assert outcome(ask(Sender("A" * length, slug="acme"), "GET")) == (401, "unauthorized")


OFF = ["PUT", "preflight", "GET", "HEAD", "query"]

STATES = {
    "disabled": (dict.fromkeys(OFF, (403, "remote_caching_disabled"))),
    "paused": (dict.fromkeys(OFF, (403, "remote_caching_paused"))),
    "over_limit": dict.fromkeys(["PUT", "preflight"], (403, "remote_caching_over_limit")),
    "soft_block": dict.fromkeys(ENDPOINTS, (402, "account_soft_blocked")),
    "payment_missing": dict.fromkeys(ENDPOINTS, (402, "payment_missing")),
}


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("state", STATES)
def test_what_a_teams_state_stops_and_what_it_leaves(
    stored: Cloud, state: str, endpoint: str
) -> None:
    match state:
        case "over_limit":
            change_state(stored.team.id, quota_bytes=1)
        case "soft_block" | "payment_missing":
            change_state(stored.team.id, block=Block(state))
        case _:
            change_state(stored.team.id, caching=CachingStatus(state))
    expected = STATES[state].get(endpoint, (SUCCESS[endpoint], ""))
    reply = ask(stored.send, endpoint)
    assert (reply.status, reply.code if reply.status >= 400 else "") == expected


def test_no_reply_and_no_log_line_holds_a_token(
    stored: Cloud, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    replies = [ask(stored.send, endpoint) for endpoint in ENDPOINTS]
    replies += [ask(Sender(stored.token, slug="other"), endpoint) for endpoint in ENDPOINTS]
    seen = capsys.readouterr().out + caplog.text + "".join(map(repr, replies))
    assert "answered" in seen
    assert stored.token not in seen
    assert stored.key.key_hash not in seen
