"""HTTP/1.1 as the sidecar speaks it: with tools that send less usual messages, and with servers that do."""

from __future__ import annotations

import io
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from larder_proxy.connections import Pool
from larder_proxy.messages import Malformed, head, read_head
from larder_proxy.server import MOST_CONNECTIONS
from larder_proxy.upstream import _reason

from tools.benchmarks.cold.tls import self_signed

from .deployment import Deployment, Running

HASH = "08e4547d5347b63f"


def asked(running: Running, request: str) -> bytes:
    """All that the sidecar answers to these bytes."""
    sidecar = running.sidecar
    known = {"HOST": f"127.0.0.1:{sidecar.listener.port}", "TOKEN": sidecar.listener.token}
    with closing(socket.create_connection(("127.0.0.1", sidecar.listener.port), 10)) as one:
        one.sendall(request.format(**known).replace("\n", "\r\n").encode())
        return b"".join(iter(lambda: one.recv(65_536), b""))


START = "GET /v8/artifacts/status HTTP/1.1\nHost: {HOST}\nAuthorization: Bearer {TOKEN}\n"


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ("no request\n\n", 400),
        ("GET / HTTP/1.1\nno header\n\n", 400),
        ("GET / HTTP/1.1\nname : with a space\n\n", 400),
        ("GET / HTTP/1.1\n folded\n\n", 400),
        ("PUT / HTTP/1.1\nContent-Length: 1\nContent-Length: 2\n\n", 400),
        ("PUT / HTTP/1.1\nContent-Length: -1\n\n", 400),
        ("PUT / HTTP/1.1\nTransfer-Encoding: gzip\n\n", 400),
        ("DELETE / HTTP/1.1\n\n", 501),
        (f"{START}Connection: close\n\n", 200),
        (f"{START.replace('1.1', '1.0')}\n", 200),
    ],
)
def test_a_damaged_request_is_refused_and_the_connection_ends(running: Running, request_: str, status: int) -> None:
    answer = asked(running, request_)
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    assert b"\r\nConnection: close\r\n" in answer


@pytest.mark.slow
@pytest.mark.parametrize("kind", range(3), ids=["slow head", "long head", "body"])
def test_strangers_neither_stop_nor_swell_the_sidecar(
    kind: int, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other users of the computer have no token. Each can open as many connections as they like."""
    monkeypatch.setattr("larder_proxy.server.HEAD_SECONDS", 6)
    port, strangers = running.sidecar.listener.port, []
    long = b"GET / HTTP/1.1\r\n" + b"".join(b"a%d: %s\r\n" % (n, b"x" * 900) for n in range(35))
    body = b"PUT / HTTP/1.1\r\nContent-Length: 1000000000\r\n\r\nx"
    for _ in range(MOST_CONNECTIONS + 40):
        one = socket.create_connection(("127.0.0.1", port), 10)
        one.sendall((b"GET / HTTP/1.1\r\n", long, body)[kind])
        strangers.append(one)
    before = time.monotonic()
    assert asked(running, f"{START}Connection: close\n\n").startswith(b"HTTP/1.1 200 ")
    # Not until the time for a head is over.
    assert time.monotonic() - before < 5
    assert threading.active_count() < MOST_CONNECTIONS + 40
    for one in strangers:
        with suppress(ConnectionError):
            one.settimeout(10)
            # Nothing, as the time for a head is over, 400 for one that is too long, or 403.
            assert one.recv(100)[:12] in (b"", b"HTTP/1.1 400", b"HTTP/1.1 403")
        one.close()


def test_a_tool_with_many_connections_gets_all_answers(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nx opens one for each task, and ends the build if one of them ends before its answer."""
    monkeypatch.setattr("larder_proxy.server.SOON_SECONDS", 60)
    listener = running.sidecar.listener
    request = (
        f"GET /gradle/ab HTTP/1.1\r\nHost: 127.0.0.1:{listener.port}\r\nAuthorization: Bearer {listener.token}\r\n\r\n"
    )
    with ExitStack() as stack:
        opened = [
            stack.enter_context(socket.create_connection(("127.0.0.1", listener.port)))
            for _ in range(MOST_CONNECTIONS + 40)
        ]
        # Several of the sidecar's looks for a connection to end.
        time.sleep(0.2)
        for one in opened:
            one.sendall(request.encode())
        for one in opened:
            assert one.recv(1_000).startswith(b"HTTP/1.1 404")


def test_a_tool_waits_while_the_system_has_no_thread(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    real, left = threading.Thread.start, [3]

    def start(thread: threading.Thread) -> None:
        if left[0]:
            left[0] -= 1
            raise RuntimeError("can't start new thread")
        real(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    for _ in range(2):
        assert asked(running, f"{START}Connection: close\n\n").startswith(b"HTTP/1.1 200 ")
    assert left == [0]


def test_a_chunk_of_negative_size_is_not_waited_for(running: Running) -> None:
    answer = asked(running, "PUT /gradle/ab HTTP/1.1\nTransfer-Encoding: chunked\nConnection: close\n\n-1\nabc")
    assert answer.startswith(b"HTTP/1.1 403 ")


def test_requests_follow_one_another(running: Running) -> None:
    answer = asked(running, f"{START}\n{START}Connection: close\n\n")
    assert answer.count(b"HTTP/1.1 200 OK") == 2


def test_curl_waits_until_it_may_send_a_large_body(running: Running, deployment: Deployment) -> None:
    put = START.replace("GET", "PUT").replace("status", HASH)
    answer = asked(running, f"{put}Expect: 100-continue\nContent-Length: 3\nConnection: close\n\nabc")
    assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 202 ")
    running.uploaded()
    assert deployment.artifacts == {HASH: b"abc"}


@pytest.mark.parametrize("body", ["Content-Length: 9\n\nabc", "Transfer-Encoding: chunked\n\n3\nabc\n"])
def test_an_upload_that_the_tool_cuts_is_not_stored(body: str, running: Running, deployment: Deployment) -> None:
    listener = running.sidecar.listener
    request = START.replace("GET", "PUT").replace("status", HASH) + body
    known = {"HOST": f"127.0.0.1:{listener.port}", "TOKEN": listener.token}
    with closing(socket.create_connection(("127.0.0.1", listener.port), 10)) as one:
        one.sendall(request.format(**known).replace("\n", "\r\n").encode())
        one.shutdown(socket.SHUT_WR)
        assert one.recv(1) == b""
    running.uploaded()
    assert deployment.sent("PUT") == []


def test_a_header_stays_in_its_line() -> None:
    for value in ("a\nb: c", "a\rb", "a\r\nb: c"):
        with pytest.raises(Malformed):
            head("GET / HTTP/1.1", {"x": value})
    assert read_head(io.BytesIO(head("GET / HTTP/1.1", {"X": " é "}))) == ("GET / HTTP/1.1", {"x": "é"})


@pytest.mark.parametrize("value", [" {}x{}y", " {}\0", " {}\rx", "{}"])
def test_many_spaces_in_a_header_take_no_time(running: Running, value: str) -> None:
    """Other users of the computer can send them, before anyone asks for the token."""
    field = value.format(*[" " * 2_000] * 2)
    began = time.monotonic()
    asked(running, f"{START}x: {field}\nConnection: close\n\n")
    assert time.monotonic() - began < 3


@contextmanager
def answering(*answers: bytes) -> Iterator[str]:
    """A server that sends these bytes for each request, whatever it is, and ends after the last one."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def serve() -> None:
            one = server.accept()[0]
            for answer in answers:
                one.recv(65_536)
                one.sendall(answer)
            one.close()

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        thread.join(10)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200\r\ncontent-length: 3\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2;x=y\r\nbc\r\n0\r\nx: y\r\n\r\n",
        b"HTTP/1.0 200 OK\r\n\r\nabc",
    ],
)
def test_every_usual_answer_is_read(answer: bytes) -> None:
    with answering(answer) as url, closing(Pool({})) as pool:
        assert pool.request("GET", url, {}).read() == b"abc"


@pytest.mark.parametrize(
    "answer",
    [
        b"", b"HTTP/1.1 200 OK\r\nContent-Len", b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", b"HTTP/1.1 200 OK\r\nContent-Length: 3x\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nz\r\nab",
    ],
)  # fmt: skip
def test_a_cut_or_damaged_answer_is_an_error(answer: bytes) -> None:
    with answering(answer) as url, closing(Pool({})) as pool, pytest.raises((OSError, ValueError)):
        pool.request("GET", url, {}).read()


def test_certificates_of_node_are_trusted(tmp_path: Path) -> None:
    """What a JavaScript team behind the TLS inspection of a company has set."""
    file = tmp_path / "own.pem"
    certificate, key = self_signed()
    file.write_bytes(key + certificate)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file)
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def serve() -> None:
            for _ in range(2):
                sock = server.accept()[0]
                with suppress(OSError), closing(context.wrap_socket(sock, server_side=True)) as one:
                    one.recv(65_536)
                    one.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx")
                sock.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        url = f"https://127.0.0.1:{server.getsockname()[1]}/"
        with pytest.raises(ssl.SSLCertVerificationError) as failed:
            Pool({}).request("GET", url, {})
        assert "set SSL_CERT_FILE or NODE_EXTRA_CA_CERTS" in _reason(failed.value)
        pool = Pool({"NODE_EXTRA_CA_CERTS": str(file)})
        assert pool.request("GET", url, {}).read() == b"x"
        pool.close()
        thread.join(10)


def test_a_proxy_that_does_not_answer_is_named() -> None:
    pool = Pool({"HTTPS_PROXY": "http://127.0.0.1:9"})
    with pytest.raises(ConnectionRefusedError) as refused:
        pool.request("GET", "https://cache.example.com/", {})
    assert "HTTPS_PROXY" in _reason(refused.value)


def test_a_proxy_without_tls_gets_no_password() -> None:
    with answering(b"HTTP/1.1 400 Bad\r\n\r\n") as url:
        pool = Pool({"HTTPS_PROXY": url.replace("http://", "https://user:secret@")})
        with pytest.raises(Malformed, match="must begin with http://"):
            pool.request("GET", "https://cache.example.com/", {})


def test_a_connection_is_kept_only_after_all_of_an_answer() -> None:
    first = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"
    with answering(first, first) as url, closing(Pool({})) as pool:
        # The server has one connection only.
        assert [pool.request("GET", url, {}).read() for _ in range(2)] == [b"abc"] * 2


def test_chunks_have_no_other_length() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"
    with answering(answer) as url, closing(Pool({})) as pool:
        reply = pool.request("GET", url, {})
        assert (reply.length, reply.read()) == (None, b"ab")


def test_an_address_without_a_host_is_not_this_computer() -> None:
    with closing(Pool({})) as pool:
        for url in ("", "/path", "http:///path"):
            with pytest.raises(ValueError, match="no address"):
                pool.request("GET", url, {})


def test_an_address_stays_in_its_line() -> None:
    with closing(Pool({})) as pool, answering(b"") as url:
        socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))).close()
        with pytest.raises(OSError, match="characters"):
            pool.request("GET", f"{url}/a b", {})


def test_a_5xx_is_reported_once(turbo: httpx.Client, running: Running, deployment: Deployment) -> None:
    """As an outage, and not as a refusal."""
    deployment.failing["HEAD"] = [(500, "internal")] * 100
    for number in range(5):
        assert turbo.head(f"/v8/artifacts/{number:016x}").status_code == 404
    (line,) = running.lines
    assert "status 500" in line
