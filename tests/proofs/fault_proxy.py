"""A proxy between the layer's clients and the stores that fails on purpose: HTTP over real sockets, on loopback.

A *call* is one operation with all of botocore's attempts, which share an id. Its name has the operation, the target,
and a number if the request has made the same call before. So a call of a run without faults has the same name in the
next run, even if calls run in parallel. A rule says which fault one of them gets.
"""

import http.client
import json
import select
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from urllib.parse import parse_qs, urlsplit

SERVICES = ("dynamodb", "s3", "lambda", "secretsmanager", "sesv2")

_MOST_SILENCE_S = 60


class Way(Enum):
    """What the client sees."""

    ANSWER = "an answer"
    SILENCE = "no answer"
    RESET = "a reset connection"
    CUT = "an answer that breaks off"
    LATE = "a late answer"


@dataclass(frozen=True)
class Fault:
    """One way to fail. With `carried_out`, the store carries the call out. With `every_try`, each retry fails too.
    `answers` has the status and code of an error reply, by service.
    """

    name: str
    way: Way
    carried_out: bool = False
    every_try: bool = True
    answers: dict[str, tuple[int, str]] = field(default_factory=dict)
    operations: tuple[str, ...] = ()
    """The operations that it applies to. Empty means all."""


@dataclass(frozen=True, order=True)
class Call:
    """The `number`th call with this operation and target, from 1."""

    service: str
    operation: str
    target: str
    number: int

    def __str__(self) -> str:
        again = f" #{self.number}" if self.number > 1 else ""
        return f"{self.operation} {self.target}{again}".replace("  ", " ").strip()


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    raw_head: list[tuple[str, str]]


@dataclass(frozen=True)
class Reply:
    status: int
    reason: str
    headers: list[tuple[str, str]]
    body: bytes


@dataclass
class Plan:
    """The fault for the calls from now on, and the calls seen. `late_s` is the delay of a late reply."""

    late_s: float
    rule: tuple[Call, Fault] | None = None
    calls: list[Call] = field(default_factory=list)
    carried_out: Counter[Call] = field(default_factory=Counter)
    """How often the store replied that it carried out a call."""
    met: int = 0
    """How many attempts had the fault."""
    silent: str = ""
    """A service that does not reply."""
    _by_id: dict[str, Call] = field(default_factory=dict)
    _named: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def name(self, service: str, request: Request) -> Call:
        """The call that a request belongs to."""
        invocation = request.headers.get("amz-sdk-invocation-id", "")
        with self._lock:
            if invocation in self._by_id:
                return self._by_id[invocation]
            operation, target = describe(service, request)
            self._named[service, operation, target] += 1
            call = Call(service, operation, target, self._named[service, operation, target])
            self.calls.append(call)
            self._by_id[invocation] = call
            return call

    def fault_of(self, call: Call) -> Fault | None:
        with self._lock:
            if call.service == self.silent:
                return SILENT
            if self.rule is None or self.rule[0] != call:
                return None
            fault = self.rule[1]
            if self.met and not fault.every_try:
                return None
            self.met += 1
            return fault

    def done(self, call: Call, reply: Reply) -> None:
        if reply.status < 300:
            with self._lock:
                self.carried_out[call] += 1


def describe(service: str, request: Request) -> tuple[str, str]:
    """The operation and the target, as names for people."""
    if service in ("dynamodb", "secretsmanager"):
        operation = request.headers["x-amz-target"].rpartition(".")[2]
        return operation, _tables_of(operation, json.loads(request.body or b"{}"))
    if service == "lambda":
        return "Invoke", "a function"
    if service == "sesv2":
        return "SendEmail", ""
    query = parse_qs(urlsplit(request.path).query, keep_blank_values=True)
    operation = {"PUT": "PutObject", "GET": "GetObject", "HEAD": "HeadObject"}.get(request.method, "DeleteObject")
    return ("ListObjectsV2" if "list-type" in query else operation), ""


def _tables_of(operation: str, body: dict[str, object]) -> str:
    named: list[str] = []
    match operation:
        case "BatchGetItem":
            named = list(body["RequestItems"])  # type: ignore[call-overload]
        case "TransactGetItems" | "TransactWriteItems":
            parts: list[dict[str, dict[str, str]]] = body["TransactItems"]  # type: ignore[assignment]
            named = [inner["TableName"] for part in parts for inner in part.values()]
        case _ if "TableName" in body:
            named = [str(body["TableName"])]
    tables = sorted({name.removeprefix("larder-").removesuffix("-table") for name in named})
    index = f" {body['IndexName']}" if "IndexName" in body else ""
    return "+".join(tables) + index + _note_of(body.get("Key") or body.get("Item") or {})


def _note_of(key: object) -> str:
    """The kind of an item that is neither an artifact nor a key: `#totals`, `#clean-up`."""
    assert isinstance(key, dict)
    for name in ("hash", "key_hash"):
        text = key.get(name, {}).get("S", "")
        if "#" in text:
            kind = text.lstrip("#").partition("#")[0] if text.startswith("#") else "pending"
            return f" #{kind}"
    return ""


class Proxy:
    """Listens on a port for each service. `upstream` has the ports of DynamoDB and S3, `answers` the other services."""

    def __init__(self, upstream: dict[str, int], answers: dict[str, Callable[[Request], Reply]], late_s: float) -> None:
        self._upstream = upstream
        self._answers = answers
        self._late_s = late_s
        self.plan = Plan(late_s)
        self.watches = False
        self.ports: dict[str, int] = {}
        self._listeners: list[socket.socket] = []
        for service in SERVICES:
            listener = socket.create_server(("127.0.0.1", 0), backlog=64)
            self._listeners.append(listener)
            self.ports[service] = listener.getsockname()[1]
            threading.Thread(target=self._accept, args=(service, listener), daemon=True).start()

    def close(self) -> None:
        for listener in self._listeners:
            listener.close()

    @contextmanager
    def failing(self, rule: tuple[Call, Fault] | None = None, *, silent: str = "") -> Iterator[Plan]:
        """A context that numbers calls from 1 and gives one of them a fault, or silences a service."""
        before, self.watches = self.plan, True
        self.plan = Plan(self._late_s, rule, silent=silent)
        try:
            yield self.plan
        finally:
            self.plan, self.watches = before, False

    def _accept(self, service: str, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(service, connection), daemon=True).start()

    def _serve(self, service: str, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        upstream: http.client.HTTPConnection | None = None
        if service in self._upstream:
            upstream = http.client.HTTPConnection("127.0.0.1", self._upstream[service], timeout=60)
        try:
            with connection, connection.makefile("rb") as incoming:
                while (head := _read_head(incoming)) is not None:
                    if not self._exchange(service, connection, incoming, head, upstream):
                        return
        except (OSError, http.client.HTTPException, ValueError):
            return
        finally:
            if upstream is not None:
                upstream.close()

    def _exchange(
        self,
        service: str,
        connection: socket.socket,
        incoming: object,
        head: tuple[str, str, list[tuple[str, str]]],
        upstream: http.client.HTTPConnection | None,
    ) -> bool:
        """Serve one request. Returns False if the connection has ended."""
        method, path, fields = head
        headers = {name.lower(): value for name, value in fields}
        plan = self.plan
        size = int(headers.get("content-length", 0))
        if "100-continue" in headers.get("expect", ""):
            connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        # The head of a request to S3 names the call, so the body can be cut.
        early = Request(method, path, headers, b"", fields) if service == "s3" else None
        call = plan.name(service, early) if early else None
        fault = plan.fault_of(call) if call else None
        if fault is not None and fault.way is Way.RESET and not fault.carried_out:
            incoming.read(size // 2)  # type: ignore[attr-defined]
            _reset(connection)
            return False
        request = Request(method, path, headers, incoming.read(size), fields)  # type: ignore[attr-defined]
        if call is None:
            call = plan.name(service, request)
            fault = plan.fault_of(call)
        reply: Reply | None = None
        if fault is None or fault.carried_out:
            reply = self._carry_out(service, request, upstream)
            plan.done(call, reply)
        if fault is None:
            assert reply is not None
            _send(connection, method, reply)
            return True
        match fault.way:
            case Way.ANSWER:
                _send(connection, method, _answer(service, fault, request))
                return True
            case Way.LATE:
                assert reply is not None
                time.sleep(plan.late_s)
                _send(connection, method, reply)
                return True
            case Way.SILENCE:
                # Wait until the client gives up.
                select.select([connection], [], [], _MOST_SILENCE_S)
                return False
            case Way.CUT:
                assert reply is not None
                _send(connection, method, reply, cut=True)
        _reset(connection)
        return False

    def _carry_out(self, service: str, request: Request, upstream: http.client.HTTPConnection | None) -> Reply:
        if upstream is None:
            return self._answers[service](request)
        for attempt in range(2):
            try:
                return _forward(upstream, request)
            except (ConnectionError, http.client.BadStatusLine):
                # A kept connection that has ended in the meantime: nothing was sent on it.
                upstream.close()
                if attempt:
                    raise
        raise AssertionError


def _forward(upstream: http.client.HTTPConnection, request: Request) -> Reply:
    upstream.putrequest(request.method, request.path, skip_host=True, skip_accept_encoding=True)
    for name, value in request.raw_head:
        if name.lower() != "expect":
            upstream.putheader(name, value)
    upstream.endheaders(request.body or None)
    answered = upstream.getresponse()
    return Reply(answered.status, answered.reason, answered.getheaders(), answered.read())


def _read_head(incoming: object) -> tuple[str, str, list[tuple[str, str]]] | None:
    line = incoming.readline()  # type: ignore[attr-defined]
    if not line:
        return None
    method, path, _ = line.decode("latin-1").split(" ", 2)
    fields: list[tuple[str, str]] = []
    while (line := incoming.readline().strip()) != b"":  # type: ignore[attr-defined]
        name, _, value = line.decode("latin-1").partition(":")
        fields.append((name, value.strip()))
    return method, path, fields


def _send(connection: socket.socket, method: str, reply: Reply, *, cut: bool = False) -> None:
    given = {name.lower(): value for name, value in reply.headers}
    lines = [f"HTTP/1.1 {reply.status} {reply.reason}"]
    lines += [
        f"{name}: {value}"
        for name, value in reply.headers
        if name.lower() not in ("content-length", "transfer-encoding", "connection")
    ]
    size = given.get("content-length", "0") if method == "HEAD" else str(len(reply.body))
    lines.append(f"content-length: {size}")
    head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
    body = b"" if method == "HEAD" else reply.body
    if cut:
        # A reply without a body is cut in its head.
        whole = head + body
        connection.sendall(head + body[: len(body) // 2] if body else whole[: len(whole) // 2])
        time.sleep(0.02)
    else:
        connection.sendall(head + body)


def _reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def _answer(service: str, fault: Fault, request: Request) -> Reply:
    status, code = fault.answers[service]
    if code == "UnprocessedKeys":
        asked = json.loads(request.body)["RequestItems"]
        empty = {"Responses": {table: [] for table in asked}, "UnprocessedKeys": asked}
        return _json(200, empty)
    if code == "TransactionCanceledException":
        parts = json.loads(request.body)["TransactItems"]
        reasons = [{"Code": "ThrottlingError", "Message": "too busy"}]
        reasons += [{"Code": "None"}] * (len(parts) - 1)
        return _json(400, {"__type": code, "message": code, "CancellationReasons": reasons})
    if service == "s3":
        text = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{code}</Message></Error>"
        body = b"" if request.method == "HEAD" else text.encode()
        return Reply(status, "Failed", [("content-type", "application/xml")], body)
    return _json(status, {"__type": code, "message": code}, code)


def _json(status: int, body: object, code: str = "") -> Reply:
    headers = [("content-type", "application/x-amz-json-1.0")]
    if code:
        headers.append(("x-amzn-errortype", code))
    return Reply(status, "OK" if status < 300 else "Failed", headers, json.dumps(body).encode())


def json_reply(status: int, body: object) -> Reply:
    """A JSON reply of a service that the proxy itself plays."""
    return _json(status, body)


def _same(code: str, status: int, s3: tuple[int, str] | None = None) -> dict[str, tuple[int, str]]:
    answers = dict.fromkeys(SERVICES, (status, code))
    return answers | {"s3": s3 or (status, code)}


SILENT = Fault("no answer", Way.SILENCE)

FAULTS = (
    Fault(
        "throttled",
        Way.ANSWER,
        answers={
            "dynamodb": (400, "ProvisionedThroughputExceededException"),
            "s3": (503, "SlowDown"),
            "lambda": (429, "TooManyRequestsException"),
            "secretsmanager": (400, "ThrottlingException"),
            "sesv2": (429, "TooManyRequestsException"),
        },
    ),
    Fault(
        "throttled within",
        Way.ANSWER,
        answers={"dynamodb": (400, "TransactionCanceledException")},
        operations=("TransactGetItems", "TransactWriteItems"),
    ),
    Fault("throttled within", Way.ANSWER, answers={"dynamodb": (200, "UnprocessedKeys")}, operations=("BatchGetItem",)),
    Fault("500", Way.ANSWER, answers=_same("InternalServerError", 500, (500, "InternalError"))),
    Fault("503", Way.ANSWER, answers=_same("ServiceUnavailable", 503)),
    SILENT,
    Fault("reset before", Way.RESET),
    Fault("reset once", Way.RESET, every_try=False),
    Fault("late", Way.LATE, carried_out=True),
    Fault("lost reply once", Way.RESET, carried_out=True, every_try=False),
    Fault("lost replies", Way.RESET, carried_out=True),
    Fault("no answer, done", Way.SILENCE, carried_out=True),
    Fault(
        "500 once, done",
        Way.ANSWER,
        carried_out=True,
        every_try=False,
        answers=_same("InternalServerError", 500, (500, "InternalError")),
    ),
    Fault("cut reply", Way.CUT, carried_out=True),
)
