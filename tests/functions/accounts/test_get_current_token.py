"""GET /v5/user/tokens/current"""

from datetime import timedelta
from typing import Any

from larder import clock
from larder.accounts.sessions import start_session
from larder.api_keys.keys import create_key
from larder.api_keys.properties import NewKey
from larder.clock import to_ms
from tests.requests import Cloud, Sender


def token_of(send: Sender) -> Any:
    reply = send("GET", "/v5/user/tokens/current")
    assert reply.status == 200
    return reply.json["token"]


def test_a_key_of_a_team(cloud: Cloud) -> None:
    assert token_of(cloud.send) == {
        "scopes": [{"type": "team", "teamId": cloud.team.id}],
        "activeAt": to_ms(cloud.key.created_at),
    }


def test_a_key_of_a_user_that_expires(cloud: Cloud) -> None:
    since = clock.now() - timedelta(seconds=10)
    token = create_key(NewKey(user_id=cloud.user.id, expires_in_s=60), now=since)[1]
    assert token_of(Sender(token)) == {
        "scopes": [{"type": "user", "expiresAt": to_ms(since) + 60_000}],
        "activeAt": to_ms(since),
    }


def test_a_session(cloud: Cloud) -> None:
    session, token = start_session(cloud.user, now=clock.now())
    assert token_of(Sender(token)) == {
        "scopes": [{"type": "user", "expiresAt": to_ms(session.expires_at)}],
        "activeAt": to_ms(session.created_at),
    }
