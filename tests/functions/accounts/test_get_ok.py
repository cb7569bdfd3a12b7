"""GET /api/auth/ok"""

from tests.requests import Browser


def test_the_service_answers_whoever_asks(aws_in_memory: None) -> None:
    reply = Browser().get("/ok")
    assert (reply.status, reply.body, reply.cookies) == (200, b'{"ok": true}', ())
