"""Every endpoint that `turbo login`, `link` and `logout` call, with every kind of token."""

from datetime import timedelta

import pytest

from larder import clock
from larder.accounts import repository as accounts
from larder.accounts.service import read_account
from larder.accounts.sessions import revoke_sessions, start_session
from larder.api_keys.keys import create_key, find_key
from larder.api_keys.models import RateLimit
from larder.api_keys.properties import NewKey
from larder.teams.models import Block
from larder.teams.state import change_state
from tests.requests import Cloud, Sender

ENDPOINTS = [
    ("GET", "/v2/user"),
    ("GET", "/v2/teams"),
    ("GET", "/v2/teams/acme"),
    ("GET", "/v5/user/tokens/current"),
    ("DELETE", "/v3/user/tokens/current"),
]

every_endpoint = pytest.mark.parametrize(("method", "path"), ENDPOINTS)


@every_endpoint
def test_a_key_passes_and_counts_one_use(cloud: Cloud, method: str, path: str) -> None:
    new = NewKey(user_id=cloud.user.id, remaining=3)
    key, token = create_key(new, now=clock.now())
    assert Sender(token)(method, path).status == 200
    left = find_key(key.id)
    assert (left is None) is (method == "DELETE")
    assert left is None or left.remaining == 2


@every_endpoint
def test_a_key_needs_no_permission(cloud: Cloud, method: str, path: str) -> None:
    token = create_key(NewKey(user_id=cloud.user.id, permissions={}), now=clock.now())[1]
    assert Sender(token)(method, path).status == 200


@every_endpoint
def test_a_session_passes(cloud: Cloud, method: str, path: str) -> None:
    token = start_session(cloud.user, now=clock.now())[1]
    assert Sender(token)(method, path).status == 200


@every_endpoint
def test_a_block_of_the_team_or_the_user_has_no_effect(cloud: Cloud, method: str, path: str) -> None:
    change_state(cloud.team.id, block=Block.SOFT)
    change_state(cloud.user.id, block=Block.PAYMENT)
    assert cloud.send(method, path).status == 200


@every_endpoint
@pytest.mark.parametrize("kind", ["expired", "ended", "of a deleted user"])
def test_401_for_a_session_that_is(cloud: Cloud, method: str, path: str, kind: str) -> None:
    since = clock.now() - timedelta(days=8) if kind == "expired" else clock.now()
    token = start_session(cloud.user, now=since)[1]
    if kind == "ended":
        revoke_sessions(cloud.user.id)
    if kind == "of a deleted user":
        assert accounts.delete(read_account(cloud.user.id), now=clock.now())
    reply = Sender(token)(method, path)
    assert (reply.status, reply.code) == (401, "unauthorized")


@every_endpoint
def test_429_for_a_key_whose_rate_limit_is_reached(cloud: Cloud, method: str, path: str) -> None:
    limit = RateLimit(enabled=True, window_ms=60_000, max_requests=1)
    new = NewKey(user_id=cloud.user.id, rate_limit=limit)
    send = Sender(create_key(new, now=clock.now())[1])
    assert send("GET", "/v2/user").status == 200
    reply = send(method, path)
    assert (reply.status, reply.code) == (429, "rate_limited")
    assert 0 < int(reply.headers["retry-after"]) <= 60


def test_no_reply_and_no_log_line_contains_a_token(
    cloud: Cloud, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    session, token = start_session(cloud.user, now=clock.now())
    replies = [Sender(token)(*endpoint) for endpoint in ENDPOINTS]
    replies += [cloud.send(*endpoint) for endpoint in ENDPOINTS]
    assert {reply.status for reply in replies} == {200}
    seen = capsys.readouterr().out + caplog.text + "".join(map(repr, replies))
    assert "answered" in seen
    for secret in (token, session.token_hash, cloud.token, cloud.key.key_hash):
        assert secret not in seen
