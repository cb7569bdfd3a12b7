"""DELETE /v3/user/tokens/current"""

from larder import clock
from larder.accounts.sessions import start_session
from larder.api_keys.keys import create_key, find_key
from larder.api_keys.properties import NewKey
from tests.requests import Cloud, Sender

CURRENT = "/v3/user/tokens/current"


def test_it_deletes_only_the_key_of_the_request(cloud: Cloud) -> None:
    other = create_key(NewKey(user_id=cloud.user.id), now=clock.now())[1]
    session = start_session(cloud.user, now=clock.now())[1]
    # An instance that has cached the key's user and team.
    assert cloud.send("GET", "/v8/artifacts/status").status == 200

    reply = cloud.send("DELETE", CURRENT)

    assert (reply.status, reply.json) == (200, {"tokenId": cloud.key.id})
    assert find_key(cloud.key.id) is None
    for method, path in (("GET", "/v8/artifacts/status"), ("GET", "/v2/user"), ("DELETE", CURRENT)):
        assert cloud.send(method, path).status == 401
    for token in (other, session):
        assert Sender(token)("GET", "/v2/user").status == 200


def test_it_revokes_only_the_session_of_the_request(cloud: Cloud) -> None:
    now = clock.now()
    session, token = start_session(cloud.user, now=now)
    other = start_session(cloud.user, now=now)[1]
    send = Sender(token, slug="acme")
    assert send("GET", "/v8/artifacts/status").status == 200

    reply = send("DELETE", CURRENT)

    assert (reply.status, reply.json) == (200, {"tokenId": session.id})
    for method, path in (("GET", "/v8/artifacts/status"), ("GET", "/v2/user"), ("DELETE", CURRENT)):
        assert send(method, path).status == 401
    for kept in (other, cloud.token):
        assert Sender(kept)("GET", "/v2/user").status == 200
