"""GET /api/auth/ok"""

from tests.requests import Browser


def test_200_without_credentials(aws_in_memory: None) -> None:
    reply = Browser().get("/ok")
    assert (reply.status, reply.body, reply.cookies) == (200, b'{"ok": true}', ())
