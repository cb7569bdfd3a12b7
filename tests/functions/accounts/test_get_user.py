"""GET /v2/user"""

from tests.requests import Cloud


def test_a_key_returns_its_user(cloud: Cloud) -> None:
    reply = cloud.send("GET", "/v2/user")
    assert reply.status == 200
    assert reply.json == {"user": {"id": cloud.user.id, "username": "ada", "email": "ada@acme.example", "name": "Ada"}}
