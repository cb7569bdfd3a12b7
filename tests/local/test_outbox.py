"""`/_local/outbox`: sent mail, shown only on this machine."""

import asyncio
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from starlette.responses import PlainTextResponse

from local.environment import OPERATOR_EMAIL
from local.function_pool import FunctionFailed
from local.outbox.pages import OutboxPages
from local.template import Function
from tests.local.stub_service import ROOT, StubCloud, eventually

# Each starts processes, and waits for them.
pytestmark = pytest.mark.slow

MESSAGE = {
    "id": "01a2",
    "sent_at": "2026-11-21T12:00:00.000Z",
    "to": "<b>@acme.example",
    "subject": "<script>alert(1)</script>",
    "text": 'Open https://cache.example.com/a?b=1&c="> or <i>not</i>',
    "html": "<html><head></head><body><a href='https://cache.example.com/'>x</a></body></html>",
}


def ask_for_mail(cloud: StubCloud, kind: str = "reset_password", email: str = OPERATOR_EMAIL) -> None:
    """Submit an email job to the function that the environment names, as a request does."""
    request = {"method": "POST", "path": "/", "ip_address": None, "user_agent": None}
    job = {"kind": kind, "email": email, "callback_url": "/next", "base_url": cloud.url}
    cloud.lambda_().invoke(
        FunctionName=cloud.description["environment"]["LARDER_EMAIL_FUNCTION"],
        InvocationType="Event",
        Payload=json.dumps({**job, "request": request}),
    )


def get(cloud: StubCloud, path: str, **headers: str) -> httpx.Response:
    return httpx.get(cloud.url + path, headers=headers, trust_env=False, timeout=30)


def messages(cloud: StubCloud) -> list[dict[str, Any]]:
    return list(get(cloud, "/_local/outbox.json").json()["messages"])


@pytest.fixture(scope="module")
def outbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StubCloud]:
    """The repository's own service, running."""
    cloud = StubCloud(
        tmp_path_factory.mktemp("outbox"),
        template=ROOT / "template.yaml",
        workers=2,
        LARDER_EMAIL_SENDER="someone@acme.example",
    )
    yield cloud
    cloud.stop()


# ------------------------------------------------------------------------------- with the real service


def test_mail_is_shown_newest_first(outbox: StubCloud) -> None:
    for number, kind in enumerate(("reset_password", "sign_up_again"), start=1):
        ask_for_mail(outbox, kind)
        assert eventually(lambda number=number: len(messages(outbox)) == number)
    subjects = [message["subject"] for message in messages(outbox)]
    assert subjects == ["Larder: You already have an account", "Larder: Reset your password"]
    page = get(outbox, "/_local/outbox").text
    assert 0 < page.index(subjects[0]) < page.index(subjects[1])


def test_a_message_is_shown_with_links_and_its_html_in_a_frame(outbox: StubCloud) -> None:
    ask_for_mail(outbox)
    assert eventually(lambda: messages(outbox))
    message = messages(outbox)[0]
    (link,) = re.findall(r"^http\S+$", message["text"], re.MULTILINE)
    shown = get(outbox, f"/_local/outbox/{message['id']}").text
    assert f'href="{link}"'.replace("&", "&amp;") in shown
    (frame,) = re.findall(r"<iframe [^>]+>", shown)
    assert 'sandbox="allow-popups allow-popups-to-escape-sandbox"' in frame
    (source,) = re.findall(r'src="([^"]+)"', frame)
    body = get(outbox, source)
    assert body.headers["content-security-policy"].startswith("sandbox allow-popups")
    assert '<base target="_blank">' in body.text


def test_an_unknown_address_gets_no_mail(outbox: StubCloud) -> None:
    ask_for_mail(outbox, email="nobody@acme.example")
    log = outbox.data / "logs" / "functions.log"
    assert eventually(lambda: '"outcome":"unknown address"' in log.read_text())
    assert "nobody@acme.example" not in {message["to"] for message in messages(outbox)}


def test_the_screen_shows_the_pages_url_at_the_start(outbox: StubCloud) -> None:
    line = f"Sent mail is shown at {outbox.url}/_local/outbox"
    assert eventually(lambda: line in outbox.screen)


def test_the_link_on_the_screen_signs_the_first_user_in_once(outbox: StubCloud) -> None:
    assert eventually(lambda: "/_local/sign-in" in outbox.screen)
    (link,) = re.findall(r"http\S+/_local/sign-in\S+", outbox.screen)
    with httpx.Client(trust_env=False, timeout=30) as client:
        assert client.get(link).headers["location"] == "/sign-in?next=/console"
        session = client.get(f"{outbox.url}/api/auth/get-session").json()
        assert session["user"]["email"] == OPERATOR_EMAIL
    with httpx.Client(trust_env=False, timeout=30) as client:
        client.get(link)
        assert client.get(f"{outbox.url}/api/auth/get-session").json() is None


def test_no_secret_is_logged(outbox: StubCloud) -> None:
    ask_for_mail(outbox)
    assert eventually(lambda: messages(outbox))
    log = (outbox.data / "logs" / "functions.log").read_text()
    for message in messages(outbox):
        for secret in re.findall(r"(?:reset-password/|token=)([\w.-]+)", message["text"]):
            assert secret not in log
            assert secret not in outbox.screen
    assert OPERATOR_EMAIL not in log


def test_a_second_start_keeps_the_outbox(tmp_path: Path) -> None:
    cloud = StubCloud(tmp_path, template=ROOT / "template.yaml")
    try:
        ask_for_mail(cloud)
        assert eventually(lambda: messages(cloud))
        before = messages(cloud)
        cloud.stop()
        cloud.start()
        assert messages(cloud) == before
    finally:
        cloud.stop()


@pytest.mark.build
def test_the_build_sends_mail_too(tmp_path: Path) -> None:
    cloud = StubCloud(tmp_path, template=ROOT / "template.yaml", RUNTIME="1")
    try:
        ask_for_mail(cloud)
        assert eventually(lambda: messages(cloud))
        assert eventually(lambda: " ms  send_account_email\n" in cloud.screen)
        assert " ! " not in cloud.screen
    finally:
        cloud.stop()


def test_a_service_without_an_outbox_has_no_such_page(cloud: StubCloud) -> None:
    assert get(cloud, "/_local/outbox").status_code == 404
    assert eventually(lambda: "stop: Ctrl-C" in cloud.screen)
    assert "Sent mail" not in cloud.screen


def test_the_first_user_sets_a_password_by_link_and_is_an_operator(outbox: StubCloud) -> None:
    with httpx.Client(base_url=f"{outbox.url}/api/auth", trust_env=False, timeout=30) as client:
        before = len(messages(outbox))
        reply = client.post("/request-password-reset", json={"email": OPERATOR_EMAIL})
        assert reply.status_code == 200
        assert eventually(lambda: len(messages(outbox)) == before + 1)
        message, *_ = messages(outbox)
        link = re.search(r"/reset-password/([^?\s]+)", message["text"])
        assert link is not None
        body = {"newPassword": "a long password", "token": link[1]}
        assert client.post("/reset-password", json=body).status_code == 200
        signed_in = client.post("/sign-in/email", json={"email": OPERATOR_EMAIL, "password": "a long password"})
        client.cookies.clear()
        bearer = {"authorization": f"Bearer {signed_in.json()['token']}"}
        # Only operators can limit a key.
        made = client.post("/api-key/create", json={"remaining": 5}, headers=bearer)
        assert (made.status_code, made.json()["remaining"]) == (200, 5)


# ---------------------------------------------------------------------------------- only the pages


class Reader:
    """A fake of the worker that reads the outbox. It returns `answer`."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.events: list[dict[str, Any]] = []

    async def invoke(self, function: Function, event: bytes, request_id: str, binary_body: bytes = b"") -> bytes:
        self.events.append(json.loads(event))
        if isinstance(self.answer, Exception):
            raise self.answer
        return json.dumps(self.answer).encode()

    async def stop(self) -> None:
        pass


def ask(
    path: str,
    answer: Any = None,
    *,
    client: str = "127.0.0.1",
    method: str = "GET",
    reader: Reader | None = None,
    headers: dict[str, str] | None = None,
) -> httpx.Response:
    """Send a request to the pages. 418 means that they passed it to the gateway."""
    gateway = PlainTextResponse("the gateway", 418)
    pages = OutboxPages(gateway, reader or Reader(answer))

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(pages, client=(client, 1234))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:3000") as http:
            return await http.request(method, path, headers=headers)

    return asyncio.run(send())


PAGE = {"messages": [MESSAGE], "next_before": "01a2"}


def test_messages_are_escaped_on_the_pages() -> None:
    for shown in (ask("/_local/outbox", PAGE), ask("/_local/outbox/01a2", MESSAGE)):
        assert shown.status_code == 200
        assert "<script>" not in shown.text
        assert "<b>" not in shown.text
        assert "<i>" not in shown.text
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown.text


def test_only_http_urls_become_links() -> None:
    text = "javascript:alert(1) data:text/html,x https://a.example/?x=<y>&z"
    shown = ask("/_local/outbox/01a2", {**MESSAGE, "text": text}).text
    links = re.findall(r'<a href="([^"]*)"', shown)
    assert links == ["/_local/outbox", "https://a.example/?x="]


def test_no_page_can_load_or_run_anything_or_be_cached() -> None:
    for path in ("/_local/outbox", "/_local/outbox/01a2", "/_local/outbox/01a2.html"):
        headers = ask(path, PAGE if path.endswith("outbox") else MESSAGE).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "script-src" not in headers["content-security-policy"]
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "no-referrer"


def test_a_page_links_to_older_ones() -> None:
    assert 'href="/_local/outbox?before=01a2"' in ask("/_local/outbox", PAGE).text
    reader = Reader({"messages": [], "next_before": None})
    ask("/_local/outbox?before=01a2", reader=reader)
    ask("/_local/outbox", reader=reader)
    assert reader.events == [{"before": "01a2"}, {"before": None}]


def test_an_empty_outbox_says_so() -> None:
    shown = ask("/_local/outbox", {"messages": [], "next_before": None})
    assert "Nothing has been sent yet." in shown.text


def test_an_expired_message_is_not_found() -> None:
    assert ask("/_local/outbox/01a2").status_code == 404


def test_a_failure_to_read_the_outbox_is_reported() -> None:
    shown = ask("/_local/outbox", FunctionFailed("took longer than its 30 s"))
    assert (shown.status_code, "took longer" in shown.text) == (502, True)


@pytest.mark.parametrize("client", ["127.0.0.1", "127.1.2.3", "::1"])
def test_the_machine_itself_can_read_the_outbox(client: str) -> None:
    assert ask("/_local/outbox.json", PAGE, client=client).json() == PAGE


@pytest.mark.parametrize("client", ["192.0.2.7", "10.0.0.1", "2001:db8::1"])
def test_another_machine_cannot_read_it(client: str) -> None:
    assert ask("/_local/outbox.json", PAGE, client=client).status_code == 418


@pytest.mark.parametrize("host", ["127.0.0.1:3000", "localhost:3000", "LOCALHOST:3000", "[::1]:3000"])
def test_loopback_names_with_the_own_port_read_it(host: str) -> None:
    assert ask("/_local/outbox.json", PAGE, headers={"host": host}).json() == PAGE


@pytest.mark.parametrize(
    "host",
    [
        "cache.example.com", "cache.example.com:3000", "abc.trycloudflare.com", "localhost", "localhost:3001",
        "localhost:3000:3000", "localhost.example.com:3000", "192.0.2.7:3000", "",
    ],
)  # fmt: skip
def test_a_tunnel_with_another_name_or_port_cannot_read_it(host: str) -> None:
    assert ask("/_local/outbox.json", PAGE, headers={"host": host}).status_code == 418


@pytest.mark.parametrize(
    "header",
    [
        "forwarded", "via", "x-forwarded-for", "x-forwarded-host", "X-Forwarded-Proto", "x-real-ip",
        "cf-connecting-ip", "cf-ray", "true-client-ip", "x-client-ip",
    ],
)  # fmt: skip
def test_a_proxy_that_names_its_client_cannot_read_it(header: str) -> None:
    passed_on = ask("/_local/outbox.json", PAGE, headers={header: "127.0.0.1"})
    assert passed_on.status_code == 418


def test_a_proxy_that_speaks_the_old_version_of_http_cannot_read_it(outbox: StubCloud) -> None:
    parts = urlsplit(outbox.url)
    with socket.create_connection((parts.hostname, parts.port)) as connection:
        head = f"GET /_local/outbox.json HTTP/1.0\r\nHost: {parts.netloc}\r\n\r\n"
        connection.sendall(head.encode())
        assert connection.makefile("rb").readline().split()[1] == b"404"


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example"])
def test_another_site_cannot_read_it_under_its_own_name(outbox: StubCloud, host: str) -> None:
    assert get(outbox, "/_local/outbox.json").status_code == 200
    assert get(outbox, "/_local/outbox.json", host=host).status_code == 403


def test_no_host_header_puts_another_site_into_a_reset_link(outbox: StubCloud) -> None:
    def request(**headers: str) -> int:
        body = {"email": OPERATOR_EMAIL}
        url = f"{outbox.url}/api/auth/request-password-reset"
        return httpx.post(url, json=body, headers=headers, trust_env=False, timeout=30).status_code

    sent = len(messages(outbox))
    assert {request(host=host) for host in ("evil.example", "127.0.0.1@evil.example")} == {403}
    assert request() == 200
    assert eventually(lambda: len(messages(outbox)) == sent + 1)
    assert not any("evil.example" in message["text"] for message in messages(outbox))


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/_local/outbox"),
        ("GET", "/_local"),
        ("GET", "/_local/outbox/"),
        ("GET", "/_local/outbox/NOBODY"),
        ("GET", "/_local/outbox.html"),
        ("GET", "/v8/artifacts/status"),
    ],
)
def test_other_requests_go_to_the_gateway(method: str, path: str) -> None:
    assert ask(path, PAGE, method=method).status_code == 418
