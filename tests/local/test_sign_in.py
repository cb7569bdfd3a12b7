"""`/_local/sign-in`: the link in the banner, which works once and only on this machine."""

import asyncio
import json

import httpx
import pytest
from starlette.responses import PlainTextResponse

from local.function_pool import FunctionFailed
from local.sign_in.link import SignInLink
from local.template import Function


class Starter:
    """A fake of the worker that starts the session."""

    def __init__(self, answer: str | Exception | None = "token.signature") -> None:
        self.answer = answer
        self.calls = 0

    async def invoke(self, function: Function, event: bytes, request_id: str, binary_body: bytes = b"") -> bytes:
        self.calls += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return json.dumps({"cookie": self.answer}).encode()

    async def stop(self) -> None:
        pass


def get(
    link: SignInLink, path: str, *, client: str = "127.0.0.1", method: str = "GET", **headers: str
) -> httpx.Response:
    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(link, client=(client, 5000))
        async with httpx.AsyncClient(transport=transport, base_url="http://192.0.2.7") as asking:
            return await asking.request(method, path, headers=headers)

    return asyncio.run(send())


def link_with(starter: Starter) -> SignInLink:
    return SignInLink(PlainTextResponse("the gateway"), starter)


def is_to_sign_in(reply: httpx.Response) -> bool:
    return reply.status_code == 303 and reply.headers["location"] == "/sign-in?next=/console"


def test_it_signs_in_once_and_then_leads_to_the_sign_in_page() -> None:
    starter = Starter()
    link = link_with(starter)
    path = link.path
    first, second = get(link, path), get(link, path)
    assert is_to_sign_in(first)
    assert first.headers["set-cookie"] == ("better-auth.session_token=token.signature; HttpOnly; Path=/; SameSite=lax")
    assert first.headers["cache-control"] == "no-store"
    assert second.headers["location"] == "/sign-in?next=/console&error=link_used"
    assert "set-cookie" not in second.headers
    assert starter.calls == 1


@pytest.mark.parametrize("query", ["", "?token=", "?token=None", "?token=%F0%9F%A7%AA", "?token=x&token=y"])
def test_another_token_neither_signs_in_nor_uses_the_link_up(query: str) -> None:
    link = link_with(Starter())
    assert "set-cookie" not in get(link, f"/_local/sign-in{query}").headers
    assert "set-cookie" in get(link, link.path).headers


def test_another_machine_cannot_use_it() -> None:
    link = link_with(Starter())
    assert "set-cookie" not in get(link, link.path, client="192.0.2.9").headers
    assert "set-cookie" in get(link, link.path).headers


def test_a_tunnel_cannot_use_it() -> None:
    link = link_with(Starter())
    for headers in ({"host": "cache.example.com"}, {"x-forwarded-for": "192.0.2.9"}):
        assert "set-cookie" not in get(link, link.path, **headers).headers
    assert "set-cookie" in get(link, link.path).headers


def test_a_link_preview_by_head_does_not_use_it_up() -> None:
    link = link_with(Starter())
    assert get(link, link.path, method="HEAD").status_code == 200
    assert "set-cookie" in get(link, link.path).headers


@pytest.mark.parametrize("answer", [None, FunctionFailed("no answer")])
def test_without_a_session_it_leads_to_the_sign_in_page(answer: str | Exception | None) -> None:
    link = link_with(Starter(answer))
    reply = get(link, link.path)
    assert is_to_sign_in(reply)
    assert "set-cookie" not in reply.headers


def test_other_paths_pass() -> None:
    assert get(link_with(Starter()), "/console").text == "the gateway"
