"""GET /v2/user"""

from larder import clock
from larder.accounts import repository
from larder.accounts.service import read_account
from larder.accounts.sessions import start_session
from tests.requests import Cloud, Sender


def test_a_key_returns_its_user(cloud: Cloud) -> None:
    reply = cloud.send("GET", "/v2/user")
    assert reply.status == 200
    assert reply.json == {"user": {"id": cloud.user.id, "username": "ada", "email": "ada@acme.example", "name": "Ada"}}


def test_a_session_returns_its_user(cloud: Cloud) -> None:
    token = start_session(cloud.user, now=clock.now())[1]
    assert Sender(token)("GET", "/v2/user").json["user"]["id"] == cloud.user.id


def test_401_for_a_key_of_a_deleted_user(cloud: Cloud) -> None:
    assert repository.delete(read_account(cloud.user.id), now=clock.now())
    reply = cloud.send("GET", "/v2/user")
    assert (reply.status, reply.code) == (401, "unauthorized")
