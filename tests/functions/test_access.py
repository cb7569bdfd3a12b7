"""Permissions: every endpoint with every role, caching status, kind of block and kind of token.

tests/access.py has the expected outcomes; turbo reacts to the codes (docs/clients/turbo.md#status-codes). The requests
come from tests/catalogue.py.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from larder import clock
from larder.accounts import repository as accounts
from larder.accounts.models import User
from larder.accounts.service import create_user, read_account
from larder.accounts.sessions import revoke_sessions, start_session
from larder.api_keys import repository as key_store
from larder.api_keys.keys import create_key, prepare_key, revoke_key, store_key
from larder.api_keys.models import ARTIFACT_ACTIONS, TEAM_ACTIONS, Permissions
from larder.api_keys.properties import NewKey
from larder.hashing import random_id
from larder.teams.members import add_member, remove_member
from larder.teams.models import Block, CachingStatus, Role
from larder.teams.state import change_state
from larder.teams.teams import TeamChange, change_team, create_team
from larder.trust import repository as rule_store
from larder.trust import rules
from larder.trust.models import NewRule
from local.template import DEFAULT_PATH
from tests.access import IN_PERSON, INDEPENDENT_ENDPOINTS, INDEPENDENT_PREFIXES, MAKES_TRUST, ROWS
from tests.catalogue import valid
from tests.conftest import BeginWith
from tests.default_template import template
from tests.issuer import ORIGIN
from tests.requests import Cloud, Reply, Sender

TEAM_IN_PATH = "/teams/{idOrSlug}"
"""Paths with this part depend on the state of that team, not on the state of the caller's personal cache."""

PUT = "PUT /v8/artifacts/{hash}"
PREFLIGHT = "OPTIONS /v8/artifacts/{hash}"
GET = "GET /v8/artifacts/{hash}"
HEAD = "HEAD /v8/artifacts/{hash}"
QUERY = "POST /v8/artifacts"
EVENTS = "POST /v8/artifacts/events"
STATUS = "GET /v8/artifacts/status"
SET_STATUS = "PUT /v1/artifacts/status"
LIST = "GET /v1/artifacts"
DELETE_MANY = "DELETE /v1/artifacts"
USAGE = "GET /v1/usage"
METRICS = "GET /v1/usage/metrics"
AUDIT = "GET /v1/audit"
"""A key reads that of its team, but not that of its user."""

ENDPOINTS = [row for row in ROWS if (request := valid(row)).for_team and request.by and row != AUDIT]
"""Endpoints that check the token and act for the team in the query."""

SPARE_KEY = "SpareKey" * 4

RULE = "rule_" + "a" * 27
SPARE_RULE = "rule_" + "b" * 27

ALL: Permissions = {"artifacts": ARTIFACT_ACTIONS, "teams": TEAM_ACTIONS, "trust": ("manage",)}


def refusal(word: str, state: str) -> tuple[int, str] | None:
    """The status and code that a word of the table means in a state. None if the request passes."""
    return {
        "yes": None,
        "reads": (403, "read_only"),
        "role": (403, "missing_role"),
        "off": (403, f"remote_caching_{state}"),
        "402": (402, "payment_missing" if state == Block.PAYMENT else "account_soft_blocked"),
    }[word]


def ask(send: Sender, endpoint: str) -> Reply:
    key_id = SPARE_KEY if "{keyId}" in endpoint else random_id()
    rule = SPARE_RULE if endpoint.startswith("DELETE") else RULE
    request = valid(endpoint, hash="abc", member="someone", key_id=key_id, rule=rule, caching="enabled")
    return request(send)


def success(endpoint: str) -> int:
    return 204 if endpoint.startswith("OPTIONS") else 202 if endpoint in (PUT, DELETE_MANY) else 200


@pytest.fixture
def stored(begin_with: BeginWith, cloud: Cloud, removal_jobs: object, mailbox: object) -> Cloud:
    """The team and its owner each have an artifact `abc`. The key has every permission in the team.

    The user `someone` is also a member. The owner has another key of the team, `SPARE_KEY`. The team has the rules
    `RULE` and `SPARE_RULE`.
    """
    return begin_with(store, cloud)


def store(cloud: Cloud) -> Cloud:
    add_member(cloud.team.id, "someone", Role.VIEWER, now=clock.now())
    new = NewKey(user_id=cloud.user.id, team_id=cloud.team.id, permissions=ALL)
    key, token = create_key(new, now=clock.now())
    spare, _ = prepare_key(new, now=clock.now())
    store_key(replace(spare, id=SPARE_KEY))
    for rule_id in (RULE, SPARE_RULE):
        store_rule(cloud, rule_id)
    stored = replace(cloud, key=key, token=token, send=Sender(token, slug="acme"))
    for send in (stored.send, session_of(cloud.user)):
        assert ask(send, PUT).status == 202
        assert ask(send, RECORD_RUN).status == 200
    return stored


def store_rule(cloud: Cloud, rule_id: str) -> None:
    new = NewRule(provider="github", repository=f"acme/{rule_id}")
    rule = rules.create_rule(cloud.team.id, new, by=None, origin=ORIGIN, now=clock.now())
    assert rule_store.delete(rule, by=None)
    version = rule_store.version_of_all(cloud.team.id)
    assert rule_store.add(replace(rule, id=rule_id), by=None, rules_version=version, most=50)


def outcome(reply: Reply) -> tuple[int, str]:
    return reply.status, reply.code if reply.status >= 400 else ""


# The table ---------------------------------------------------------------------------------------


def expected(title: str, by: str, state: str = "enabled") -> dict[str, tuple[int, str]]:
    """A column of the table, for a key or a session."""
    column = {endpoint: refusal(words[title], state) or (success(endpoint), "") for endpoint, words in ROWS.items()}
    passing = {endpoint for endpoint in MAKES_TRUST if column[endpoint] == (200, "")}
    refused = dict.fromkeys(IN_PERSON | passing, (403, "session_required"))
    return column | refused if by == "key" else column


def token_of(user: User, by: str) -> str:
    if by == "session":
        return start_session(user, now=clock.now())[1]
    return create_key(NewKey(user_id=user.id, permissions=ALL), now=clock.now())[1]


def lasting(token: str, user: User, by: str, endpoint: str) -> str:
    """The token, or another one for the endpoint that deletes it."""
    return token_of(user, by) if endpoint == "DELETE /v3/user/tokens/current" else token


@pytest.mark.parametrize("by", ["key", "session"])
@pytest.mark.parametrize("role", list(Role))
def test_what_each_role_can_do(stored: Cloud, role: Role, by: str) -> None:
    member = create_user("member@acme.example", "Member", now=clock.now())
    add_member(stored.team.id, member.id, role, now=clock.now())
    token = token_of(member, by)
    seen = {
        endpoint: outcome(ask(Sender(lasting(token, member, by, endpoint), slug="acme"), endpoint)) for endpoint in ROWS
    }
    assert seen == expected(role, by)


def bring_into(state: str, owner: str) -> None:
    match state:
        case "over_limit":
            change_state(owner, quota_bytes=1)
        case Block.SOFT | Block.PAYMENT:
            change_state(owner, block=Block(state))
        case _:
            change_state(owner, caching=CachingStatus(state))


STATES = [*CachingStatus, *Block]
IN_STATES = [
    (state, by, scope)
    for number, state in enumerate(STATES)
    # Of the four combinations, the two in which both differ: each pair of values occurs.
    for by, scope in zip(("key", "session"), ("team", "person") if number % 2 else ("person", "team"), strict=True)
]


@pytest.mark.usefixtures("refusing")
@pytest.mark.parametrize(("state", "by", "scope"), IN_STATES)
def test_what_each_status_and_block_refuses(stored: Cloud, state: str, by: str, scope: str) -> None:
    owner, slug = (stored.team.id, "acme") if scope == "team" else (stored.user.id, None)
    token = token_of(stored.user, by)
    bring_into(state, owner)
    seen = {}
    for endpoint in ROWS:
        send = Sender(lasting(token, stored.user, by, endpoint), slug=slug)
        seen[endpoint] = outcome(ask(send, endpoint))
        if endpoint == SET_STATUS:
            bring_into(state, owner)
    row = expected("blocked" if state in list(Block) else state, by, state)
    if scope == "person":
        enabled = expected("enabled", by)
        row |= {endpoint: enabled[endpoint] for endpoint in ROWS if TEAM_IN_PATH in endpoint}
        if by == "key":
            row[AUDIT] = (403, "session_required")
    assert seen == row


@pytest.mark.parametrize("state", ["disabled", "paused", "over_limit", *Block])
def test_a_users_status_is_independent_of_their_teams(stored: Cloud, state: str) -> None:
    bring_into(state, stored.user.id)
    seen = {endpoint: ask(stored.send, endpoint).status for endpoint in ENDPOINTS}
    assert seen == {endpoint: success(endpoint) for endpoint in ENDPOINTS}


def test_every_endpoint_is_in_the_table() -> None:
    assert ROWS.keys() == {
        f"{route.method} {route.path}"
        for route in template().routes
        if not route.path.startswith(INDEPENDENT_PREFIXES)
        and f"{route.method} {route.path}" not in INDEPENDENT_ENDPOINTS
        and not route.function.logical_id.startswith("Show")
        and route.path != DEFAULT_PATH
    }


# Keys, and the teams that a request can name ------------------------------------------------------


def asked(send: Sender) -> dict[str, tuple[int, str]]:
    """The outcome of each endpoint."""
    return {endpoint: outcome(ask(send, endpoint)) for endpoint in ENDPOINTS}


def everywhere(status: int, code: str) -> dict[str, tuple[int, str]]:
    return dict.fromkeys(ENDPOINTS, (status, code))


def test_a_members_team_key_passes(stored: Cloud) -> None:
    assert asked(stored.send) == {endpoint: (success(endpoint), "") for endpoint in ENDPOINTS}


@pytest.mark.parametrize(
    "authorization",
    [
        None, "", "Bearer", "Bearer ", "Bearer short", f"Basic {'a' * 64}", f"Bearer {'a' * 64} {'a' * 64}",
        f"Bearer {'é' * 64}", f"Bearer {'a' * 257}",
    ],
)  # fmt: skip
def test_401_without_a_well_formed_token(stored: Cloud, authorization: str | None) -> None:
    send = Sender(None, slug="acme", authorization=authorization)
    assert asked(send) == everywhere(401, "unauthorized")
    assert ask(send, GET).headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("kind", ["unknown", "revoked", "disabled", "expired"])
def test_401_for_a_key_that_is(stored: Cloud, kind: str) -> None:
    now = clock.now()
    new = NewKey(user_id=stored.user.id, permissions=ALL, expires_in_s=60)
    key, token = create_key(new, now=now - timedelta(hours=1) if kind == "expired" else now)
    if kind == "unknown":
        token = token[:-1] + ("a" if token[-1] != "a" else "b")
    send = Sender(token, slug="acme")
    if kind == "revoked":
        # The instance knows the token.
        assert all(status < 400 for status, _ in asked(send).values())
        assert revoke_key(key)
    if kind == "disabled":
        key_store.delete(key.key_hash)
        key_store.add(replace(key, enabled=False))
    assert asked(send) == everywhere(401, "unauthorized")


def test_403_for_a_non_member(stored: Cloud) -> None:
    mallory = create_user("mallory@elsewhere.example", "Mallory", now=clock.now())
    for team in ({"slug": "acme"}, {"team_id": stored.team.id}):
        stranger = Sender(token_of(mallory, "key"), **team)
        assert asked(stranger) == everywhere(403, "not_a_team_member")


def test_an_unknown_team_looks_like_another_users_team(stored: Cloud) -> None:
    for team in ({"slug": "no-such-team"}, {"team_id": "team_doesnotexist"}):
        unknown = Sender(token_of(stored.user, "key"), **team)
        assert asked(unknown) == everywhere(403, "not_a_team_member")


def test_403_for_a_key_of_another_team(stored: Cloud) -> None:
    other = create_team("Other", "other", owner_user_id=stored.user.id, now=clock.now())
    for sender in (Sender(stored.token, slug="other"), Sender(stored.token, team_id=other.id)):
        assert asked(sender) == everywhere(403, "not_a_team_member")


@pytest.mark.parametrize(
    "query", ["teamId=acme", "teamId=team_", "teamId=team_a%2Fb", "teamId=team_a&teamId=team_b",
              "slug=a_b", "slug=-a", "slug=" + "a" * 49, "slug=acme&slug=acme",
              "slug=%F0%9F%98%80", "slug=acme%00"],
)  # fmt: skip
def test_403_for_a_bad_team_in_the_query(stored: Cloud, query: str) -> None:
    """turbo shows only the messages of 403."""
    assert asked(Sender(stored.token, query=query)) == everywhere(403, "invalid_team")


@pytest.mark.parametrize("slug", ["Acme", "%20acme", "ACME%20", "{id}"])
def test_capitals_and_spaces_around_a_slug_are_forgiven_and_an_id_in_its_place(stored: Cloud, slug: str) -> None:
    send = Sender(token_of(stored.user, "key"), query=f"slug={slug.format(id=stored.team.id)}")
    assert ask(send, GET).status == 200


@pytest.mark.parametrize("name", ["teamid", "team_id", "TEAMID", "teamId[]", "team", "Slug", "teamSlug", "team-slug"])
def test_400_for_another_spelling_of_the_team_parameter(stored: Cloud, name: str) -> None:
    """Without a team the request would act on the user's personal artifact of the same hash."""
    send = Sender(token_of(stored.user, "key"), query=f"{name}={stored.team.id}")
    assert asked(send) == everywhere(400, "bad_request")
    assert ask(send, GET).message.startswith(f"{name}: ")


def test_an_unknown_parameter_is_refused_except_by_the_cache_endpoints(stored: Cloud) -> None:
    send = stored.send.asking(hash="abc")
    assert asked(send) == {
        endpoint: (400, "bad_request") if " /v1/" in endpoint else (success(endpoint), "") for endpoint in ENDPOINTS
    }
    assert ask(send, LIST).message.startswith("hash: is unknown: the parameters here are ")


def test_an_unknown_filter_deletes_nothing(stored: Cloud) -> None:
    reply = stored.send("DELETE", f"/v1/artifacts?writer={stored.key.id}&before=2026-01-01")
    assert reply.message == "before: is unknown: the parameters here are all, from, scope, slug, teamId, until, writer"
    assert ask(stored.send, GET).status == 200


def test_a_team_key_acts_for_its_team_if_the_request_names_none(stored: Cloud) -> None:
    assert ask(Sender(stored.token), GET).status == 200


@pytest.mark.parametrize("slug", ["other", "unknown"])
def test_403_for_a_slug_of_another_team_than_the_id(stored: Cloud, slug: str) -> None:
    """As turbo sends it after `turbo link` with one team and `--team` with another."""
    create_team("Other", "other", owner_user_id=stored.user.id, now=clock.now())
    send = Sender(token_of(stored.user, "key"), slug=slug, team_id=stored.team.id)
    assert asked(send) == everywhere(403, "teams_differ")


def test_a_request_can_name_one_team_by_both_also_by_a_former_slug(stored: Cloud) -> None:
    change_team(stored.team.id, TeamChange(slug="renamed"), by=None, now=clock.now())
    for slug in ("acme", "Renamed"):
        both = Sender(stored.token, slug=slug, team_id=stored.team.id)
        assert ask(both, GET).status == 200


NO, READ = "missing_permission", "read_only"
GET_RUN = "GET /v1/runs/{runId}"
LIST_RUNS, RECORD_RUN, DELETE_RUNS = "GET /v1/runs", "POST /v1/runs", "DELETE /v1/runs"
READS, WRITES = (
    [GET, HEAD, QUERY, USAGE, METRICS, LIST_RUNS, GET_RUN, "GET /v1/tasks/history", "POST /v1/causes"],
    [PUT, PREFLIGHT, RECORD_RUN],
)
MANAGES = [endpoint for endpoint in ENDPOINTS if ROWS[endpoint]["MEMBER"] == "role" and endpoint != DELETE_RUNS]
OTHERS_RUNS = {DELETE_RUNS: "missing_role"}
"""A reporter can delete only their own."""
NOTHING = dict.fromkeys([*READS, *WRITES, *MANAGES, EVENTS, DELETE_RUNS], NO)


@pytest.mark.parametrize(
    ("permissions", "refused"),
    [
        ({"artifacts": ("read", "write", "manage")}, {}),
        ({"artifacts": ("read", "write")}, dict.fromkeys(MANAGES, NO) | OTHERS_RUNS),
        ({"artifacts": ("read",)}, dict.fromkeys(MANAGES, NO) | dict.fromkeys([*WRITES, DELETE_RUNS], READ)),
        ({"artifacts": ("write",)}, dict.fromkeys([*MANAGES, *READS], NO) | OTHERS_RUNS),
        ({"artifacts": ("manage",)}, dict.fromkeys([*READS, *WRITES], NO)),
        ({}, NOTHING),
        ({"teams": ("read", "write", "manage")}, NOTHING),
    ],
    ids=["all", "read and write", "read", "write", "manage", "none", "of another product"],
)
def test_a_key_can_do_what_its_permissions_allow(
    stored: Cloud, permissions: Permissions, refused: dict[str, str]
) -> None:
    new = NewKey(user_id=stored.user.id, permissions=permissions)
    token = create_key(new, now=clock.now())[1]
    assert asked(Sender(token, slug="acme")) == {
        endpoint: (403, refused[endpoint]) if endpoint in refused else (success(endpoint), "") for endpoint in ENDPOINTS
    }


@pytest.mark.parametrize(
    ("permissions", "status"),
    [
        ({"artifacts": ("read",)}, "enabled"),
        ({"artifacts": ("write",)}, "enabled"),
        ({"artifacts": ("manage",)}, "disabled"),
        ({"teams": ("read", "write")}, "disabled"),
        ({}, "disabled"),
    ],
    ids=["read", "write", "manage", "of another product", "none"],
)
def test_the_status_is_disabled_for_a_key_that_can_neither_read_nor_write(
    stored: Cloud, permissions: Permissions, status: str
) -> None:
    new = NewKey(user_id=stored.user.id, permissions=permissions)
    send = Sender(create_key(new, now=clock.now())[1], slug="acme")
    assert ask(send, STATUS).json == {"status": status}


def test_leaving_a_team_takes_effect_at_the_next_request(stored: Cloud) -> None:
    now = clock.now()
    member = create_user("member@acme.example", "Member", now=now)
    sender = Sender(token_of(member, "key"), slug="acme")
    assert asked(sender) == everywhere(403, "not_a_team_member")
    for endpoint in ENDPOINTS:
        add_member(stored.team.id, member.id, Role.OWNER, now=now)
        assert ask(sender, endpoint).status == success(endpoint)
        remove_member(stored.team.id, member.id, by=None)
        assert outcome(ask(sender, endpoint)) == (403, "not_a_team_member")


# Session tokens, which have 32 characters, in place of keys -------------------------------------


def session_of(user: User, **properties: Any) -> Sender:
    token = start_session(user, now=properties.pop("since", clock.now()))[1]
    return Sender(token, **properties)


@pytest.mark.parametrize("by", ["slug", "id"])
def test_a_members_session_acts_for_the_team_in_the_request(stored: Cloud, by: str) -> None:
    team: dict[str, str] = {"slug": "acme"} if by == "slug" else {"team_id": stored.team.id}
    for endpoint in ENDPOINTS:
        send = session_of(stored.user, **team)
        # At the second request, the instance knows the token.
        assert [ask(send, endpoint).status for _ in range(2)] == [success(endpoint)] * 2


def test_a_session_without_a_team_acts_for_its_user(stored: Cloud) -> None:
    send = session_of(stored.user)
    assert ask(send, PUT).status == 202
    assert ask(send, GET).status == 200
    assert ask(session_of(stored.user, slug="acme"), GET).status == 200


@pytest.mark.parametrize("kind", ["unknown", "expired", "ended", "of a deleted user"])
@pytest.mark.parametrize("slug", ["acme", "nobody", None])
def test_401_for_a_session_that_is(stored: Cloud, kind: str, slug: str | None) -> None:
    since = clock.now() - timedelta(days=8) if kind == "expired" else clock.now()
    send = session_of(stored.user, slug=slug, since=since)
    match kind:
        case "unknown":
            send = Sender("A" * 32, slug=slug)
        case "ended":
            # The instance knows the token.
            assert all(status < 400 for status, _ in asked(replace(send, slug="acme")).values())
            revoke_sessions(stored.user.id)
        case "of a deleted user":
            assert all(status < 400 for status, _ in asked(replace(send, slug="acme")).values())
            assert accounts.delete(read_account(stored.user.id), now=clock.now())
    assert asked(send) == everywhere(401, "unauthorized")


def test_403_for_the_session_of_a_non_member(stored: Cloud) -> None:
    mallory = create_user("mallory@elsewhere.example", "Mallory", now=clock.now())
    for team in ({"slug": "acme"}, {"team_id": stored.team.id}, {"slug": "nobody"}):
        assert asked(session_of(mallory, **team)) == everywhere(403, "not_a_team_member")


@pytest.mark.parametrize("length", [31, 33, 63])
def test_401_for_a_token_of_an_unknown_length(stored: Cloud, length: int) -> None:
    assert outcome(ask(Sender("A" * length, slug="acme"), GET)) == (401, "unauthorized")


def test_no_reply_and_no_log_line_contains_a_token(
    stored: Cloud, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    replies = [ask(stored.send, endpoint) for endpoint in ENDPOINTS]
    replies += [ask(Sender(stored.token, slug="other"), endpoint) for endpoint in ENDPOINTS]
    seen = capsys.readouterr().out + caplog.text + "".join(map(repr, replies))
    assert "answered" in seen
    assert stored.token not in seen
    assert stored.key.key_hash not in seen
