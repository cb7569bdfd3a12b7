"""One oracle for every write: a fault at any call to AWS, then the client repeats the request, events and jobs arrive,
and schedules run. What is stored in the end equals what is stored without the fault, or
fault_families names the difference.

Ids from before the request count as they are, new ones by where they appear: a reference to another item is another
state. Times count to the minute.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from threading import Lock
from typing import Any, NamedTuple
from unittest.mock import patch
from urllib.parse import urlsplit

import time_machine
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.exceptions import ReadTimeoutError
from moto.core.botocore_stubber import BotocoreStubber
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.dynamodb.models import dynamodb_backends
from moto.s3.models import s3_backends

from larder.artifacts.repository.table import owner_of
from larder.errors import TryAgain
from larder.instance import restart
from larder.settings import region, settings
from local.event_delivery import matches
from tests.default_template import template
from tests.moto_sockets import _call, _Connection
from tests.moto_stores import Stores, put_back_waiting
from tests.proofs.fault_families import Family
from tests.requests import Context, Reply, invoke

BEGIN = datetime(2026, 11, 30, 12, tzinfo=UTC)

FAULTS = {
    "not sent": "No attempt of the call reaches AWS.",
    "throttled": "AWS refuses every attempt because of too many requests.",
    "lost": "Every attempt is carried out, but its reply gets lost.",
    "lost once": "The first attempt is carried out, but its reply gets lost.",
    "crash before": "The function ends before the call.",
    "crash after": "The function ends after the call.",
    "at once": "The same event arrives again, and is handled just before the call.",
    "never": "The event does not arrive.",
}
OF_FUNCTIONS = ("at once", "never")
_OF_READS = ("not sent", "throttled")
_READS = ("Get", "Query", "Head", "BatchGet", "List", "TransactGet")
_RETRY_AFTER = timedelta(seconds=2)
_SETTLES_AFTER = [timedelta(hours=hours) for hours in (1, 25.5, 27, 51, 53)]
_ANNOUNCED = {"detail": {"object": template().event_rules[0].pattern["detail"]["object"]}}
"""The part of CommitUpload's rule that distinguishes objects."""
_SCHEDULED = [schedule.function.handler for schedule in template().schedules]


class Crash(BaseException):
    """The function ends here. Nothing that it does later reaches AWS."""


class Attempt(NamedTuple):
    """One attempt of a call. `send` carries it out, and `reply` makes the reply that its client reads."""

    id: str
    service: str
    operation: str
    body: bytes
    path: str
    send: Callable[[], Any]
    reply: Callable[[int, bytes, str], Any]
    no_reply: Exception

    def name(self) -> str:
        """Operation, tables and index."""
        if self.service != "dynamodb":
            return self.operation
        body = json.loads(self.body)
        named = [body["TableName"]] if "TableName" in body else list(body.get("RequestItems", ()))
        named += [inner["TableName"] for part in body.get("TransactItems", ()) for inner in part.values()]
        tables = "+".join(sorted({_short(name) for name in named}))
        return " ".join(filter(None, [self.operation, tables, body.get("IndexName")]))

    def throttled(self) -> Any:
        """The reply of a service that gets too many requests."""
        if self.service == "s3":
            return self.reply(
                503, b"" if self.operation == "HeadObject" else b"<Error><Code>SlowDown</Code></Error>", ""
            )
        body: dict[str, Any] = {}
        code = "ThrottlingException"
        if self.operation == "BatchGetItem":
            unprocessed = {"Responses": {}, "UnprocessedKeys": json.loads(self.body)["RequestItems"]}
            return self.reply(200, json.dumps(unprocessed).encode(), "")
        if self.operation.startswith("Transact"):
            code, count = "TransactionCanceledException", len(json.loads(self.body)["TransactItems"])
            body = {"CancellationReasons": [{"Code": "ThrottlingError"}, *[{"Code": "None"}] * (count - 1)]}
        status = 429 if self.service in ("lambda", "sesv2") else 400
        return self.reply(status, json.dumps({"__type": code, **body}).encode(), code)


@dataclass
class Calls:
    """The calls of a request, by name and number. The one that is `at` has the fault."""

    world: "World"
    at: str = ""
    fault: str = ""
    made: dict[str, str] = field(default_factory=dict)
    """The names by the id that all attempts of a call share."""
    met: int = 0
    crashed: bool = False
    _done: dict[str, Any] = field(default_factory=dict)
    _lock: Any = field(default_factory=Lock)

    def take(self, attempt: Attempt) -> Any:
        """Carry out an attempt, unless it has the fault. Returns the reply."""
        with self._lock:
            if attempt.id not in self.made:
                name = attempt.name()
                number = 1 + sum(one.partition(" #")[0] == name for one in self.made.values())
                self.made[attempt.id] = name if number == 1 else f"{name} #{number}"
            if self.crashed:
                raise Crash
            failing = self.made[attempt.id] == self.at
            self.met += failing
            crashes = self.crashed = failing and self.fault.startswith("crash")
        if failing and self.fault == "not sent":
            raise attempt.no_reply
        if failing and self.fault == "throttled":
            return attempt.throttled()
        if failing and self.fault == "at once" and self.met == 1:
            self.world.again()
        if not (failing and self.fault == "crash before"):
            reply = self._carry_out(attempt)
            if not failing or self.fault == "at once" or (self.fault == "lost once" and self.met > 1):
                return reply
        raise Crash if crashes else attempt.no_reply

    def _carry_out(self, attempt: Attempt) -> Any:
        if attempt.id in self._done and attempt.operation == "TransactWriteItems":
            return self._done[attempt.id]  # DynamoDB knows the token of what it has carried out. moto does not.
        reply = self._done[attempt.id] = self.world.answer(attempt)
        return reply


def _short(table: str) -> str:
    return table.removeprefix("larder-").removesuffix("-table")


class _Body:
    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self, **_: Any) -> Iterator[bytes]:
        yield self._content


def _to_boto3(status: int, content: bytes, code: str) -> AWSResponse:
    return AWSResponse("https://aws", status, HTTPHeaders.from_pairs([("x-amzn-errortype", code)]), _Body(content))


def _to_wire(status: int, content: bytes, code: str) -> tuple[int, dict[str, str], bytes]:
    return status, {"content-length": str(len(content)), "x-amzn-errortype": code}, content


# What is stored ---------------------------------------------------------------------------------------------------

_ID = re.compile(r"([A-Za-z0-9_-]{22,})")
_UNCOUNTED = {
    "sweep_shard",
    "sealed",
    "start",
    "version",
    "explanation",
    "stored_artifacts",
    "stored_bytes",
    "scoped_bytes",
}
"""Attributes with random or compressed values, versions, and samples of a day."""
_PART = re.compile(r"(?<=#)[0-9a-f](?=$|#)")


_AGAIN = re.compile("(?i)retry-after.*(b''|try_again|temporarily_unavailable)")
_UNSHOWN = re.compile(r'"(start|remaining|requestCount)": ?[^,}]+|(state|nonce|code_challenge)=[^&"]+')
"""Of a key: random, and what each attempt counts. Of a sign-in with a provider: random."""


@dataclass
class State:
    """What is stored and under way, as texts. `known` are the ids from before the request."""

    items: list[str]
    known: frozenset[str]

    def counted(self, without: str = "$.") -> Counter[str]:
        """The items that do not match `without`, with a digest of where it appears for each new id."""
        ignored = re.compile(without)
        items = [item for item in map(_ID.split, self.items) if not ignored.match(self._text(item, {}))]
        shown: dict[str, str] = {}
        for _ in range(3):
            places: dict[str, set[str]] = defaultdict(set)
            for item in items:
                text = self._text(item, shown)
                for number, id in enumerate(item[1::2]):
                    places[id].add(f"{number} {text}")
            shown = {id: f"<{sha256(repr(sorted(at)).encode()).hexdigest()[:8]}>" for id, at in places.items()}
        return Counter(self._text(item, shown) for item in items)

    def plain(self) -> Counter[str]:
        """The items without new ids."""
        return Counter(self._text(_ID.split(item), {}) for item in self.items)

    def _text(self, item: list[str], shown: dict[str, str]) -> str:
        new = (part if part in self.known else shown.get(part, "<>") for part in item[1::2])
        return "".join(part for pair in zip(item[::2], [*new, ""], strict=True) for part in pair)


def _value(name: str, typed: dict[str, Any]) -> Any:
    ((kind, value),) = typed.items()
    if kind == "M":
        return {name: _value(name, inner) for name, inner in sorted(value.items())}
    if kind == "L":
        return [_value("", inner) for inner in value]
    if kind == "N" and len(value) in (10, 13):
        seconds = int(value) / (1000 if len(value) == 13 else 1) - BEGIN.timestamp()
        return f"{seconds // 60:+.0f} min"
    return _padded(value) if name.endswith("generation") or name == "inputs" else value


def _padded(short: str) -> str:
    """A short id as one that State takes for an id."""
    return f"{short:0>22}"


def _stored() -> Iterator[str]:
    put_back_waiting()
    now = datetime.now(UTC).timestamp()
    for table in dynamodb_backends[DEFAULT_ACCOUNT_ID][region()].tables.values():
        for item in table.all_items():
            typed = item.to_json()["Attributes"]
            if ("request_count" in typed and "window" in typed) or typed.get("key_hash") == {"S": "#clean-up"}:
                continue  # each request counts for the rate limits, and the clean-up is due later
            if int(typed.get("expires_at", {}).get("N", now)) < now:
                continue  # DynamoDB deletes it
            key = [str(_value("", typed.pop(one["AttributeName"]))) for one in table.schema]
            place = f"{_short(table.name)} {_PART.sub('*', '/'.join(key))}"
            if "/".join(key).startswith("#keys-of#"):
                continue  # hashes of deleted keys stay in it
            for name in [name for name, value in typed.items() if "SS" in value]:
                yield from (f"{place} {name}: {member}" for member in typed.pop(name)["SS"])
            for name in [name for name in typed if name.startswith(("uploads#", "uploaded_bytes#"))]:
                yield f"usage {place} {name}: {typed.pop(name)['N']}"
            shown = {name: _value(name, value) for name, value in sorted(typed.items()) if name not in _UNCOUNTED}
            yield f"{place} {json.dumps(shown, default=str)}"
    for name, version in _objects():
        shown_name = f"{name[:-9]}/{_padded(name[-8:])}" if name.startswith("inputs/") else name
        yield f"bucket {shown_name} {version.size} {version.etag} {sorted(version.metadata.items())}"


def _objects() -> Iterator[tuple[str, Any]]:
    put_back_waiting()
    bucket = s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets[settings().artifacts_bucket]
    for key, versions in bucket.keys.lists():
        yield from ((key, version) for version in versions)


# Runs -------------------------------------------------------------------------------------------------------------

Request = Callable[[], Reply]


@dataclass
class World:
    """The stores of a case. `jobs` are asynchronous invocations, and `mail` what SES has sent."""

    clock: Any
    jobs: list[tuple[str, str]] = field(default_factory=list)
    mail: list[str] = field(default_factory=list)
    again: Callable[[], Any] = lambda: None
    warm: Callable[[], Any] = lambda: None

    def __post_init__(self) -> None:
        self.calls = Calls(self)

    def begin(self) -> None:
        """Make what is stored now the start of every run. Events of its objects got lost."""
        self._known = frozenset(id for item in _stored() for id in _ID.findall(item))
        self._start, self._began = Stores(region()), datetime.now(UTC)
        self._announced = {version.version_id for _, version in _objects()}

    def back(self) -> None:
        """Go back to the start, in a new instance."""
        self._start.put_back()
        self.jobs, self.mail, self._seen = [], [], set(self._announced)
        self.clock.move_to(self._began)
        restart()
        self.warm()

    def state(self) -> State:
        under_way = [f"job {name} {payload}" for name, payload in self.jobs] + [f"mail {one}" for one in self.mail]
        return State([*_stored(), *under_way], self._known)

    def run(self, request: Request, at: str = "", fault: str = "") -> tuple[Reply | None, Calls]:
        """Send a request. Returns the reply, None after a crash, and its calls."""
        self.calls = calls = Calls(self, at, fault)
        self.again = request
        try:
            return request(), calls
        except Crash:
            restart()
            return None, calls
        finally:
            self.calls = Calls(self)

    def answer(self, attempt: Attempt) -> Any:
        if attempt.service == "lambda":
            self.jobs.append((attempt.path.split("/")[3], attempt.body.decode()))
            return attempt.reply(202, b"", "")
        if attempt.service == "sesv2":
            self.mail.append(attempt.body.decode())
            return attempt.reply(200, b'{"MessageId": "sent"}', "")
        return attempt.send()

    def settle(self) -> Iterator[State]:
        """Deliver events and jobs, and run the schedules for two days. Yields the state after each step."""
        self.clock.shift(timedelta(minutes=2))
        for key, version in reversed([*_objects()]):
            event = created(key, version.size, version.version_id)
            if matches(_ANNOUNCED, event) and version.version_id not in self._seen:
                arrived = function("artifacts.commit_upload.handler", event)
                assert arrived.status == 200, f"the event of {key} fails"
        while self.jobs:
            name, payload = self.jobs.pop(0)
            done = function(_invoked()[name], json.loads(payload))
            assert done.status == 200 or name != settings().commit_function, f"{name} fails for {payload}"
        yield self.state()
        for after in _SETTLES_AFTER:
            self.clock.move_to(self._began + after)
            for handler in _SCHEDULED:
                restart()
                assert function(handler).status == 200, f"{handler} fails"
            yield self.state()

    def untidy(self) -> list[str]:
        """Objects without an artifact, artifacts without an object, and wrong totals."""
        put_back_waiting()
        tables = dynamodb_backends[DEFAULT_ACCOUNT_ID][region()].tables
        items = [item.to_regular_json() for item in tables[settings().artifacts_table].all_items()]
        stored = {
            f"artifacts/{owner_of(i['owner'])}/{i['hash']}/{i['upload_id']}": i["size_bytes"]
            for i in items
            if "#" not in i["owner"] + i["hash"]
        }
        found = {key: version.size for key, version in _objects() if key.startswith("artifacts/")}
        totals = sum(item["artifacts"] for item in items if item["hash"] == "#totals")
        wrong = [f"{len(stored)} artifacts, counted {totals}"] * (totals != len(stored))
        return [*wrong, *map(str, found.items() ^ stored.items())]

    @contextmanager
    def aside(self) -> Iterator[None]:
        """A context in which nothing that changes counts."""
        kept, jobs = Stores(region()), [*self.jobs]
        restart()
        yield
        kept.put_back()
        self.jobs = jobs


def _invoked() -> dict[str, str]:
    """The handlers of asynchronous invocations, by the name of the function."""
    return {
        settings().email_function: "accounts.send_account_email.handler",
        settings().removal_function: "artifacts.remove_artifacts.handler",
        settings().commit_function: "artifacts.commit_upload.handler",
    }


def created(key: str, size: int, version: str) -> dict[str, Any]:
    """The event that S3 sends for a new object."""
    stored = {"key": key, "size": size, "version-id": version}
    detail = {"bucket": {"name": settings().artifacts_bucket}, "object": stored}
    return {"source": "aws.s3", "detail-type": "Object Created", "detail": detail}


def function(handler: str, event: Any = None) -> Reply:
    """Invoke a function that has no route. The status is 503 if Lambda would invoke it again."""
    try:
        invoke(handler, event or {}, Context(remaining_ms=250_000))
    except TryAgain:
        return Reply(503, {"retry-after": "by Lambda"}, b"")
    return Reply(200, {}, b"")


@contextmanager
def opened() -> Iterator[World]:
    """A world in moto's stores, whose clock stands still."""
    by_wire, by_boto3 = _Connection._answered, BotocoreStubber.__call__

    def take_of_wire(connection: _Connection, method: str, target: str, headers: Any, body: bytes) -> Any:
        service = next(name for name in ("dynamodb", "s3", "lambda", "secretsmanager") if name in connection._host)
        send = partial(by_wire, connection, method, target, headers, body)
        operation, _ = _call(method, target, headers, body)
        id = headers["amz-sdk-invocation-id"]
        return world.calls.take(Attempt(id, service, operation, body, target, send, _to_wire, TimeoutError()))

    def take_of_boto3(stubber: BotocoreStubber, event_name: str, request: Any, **_: Any) -> Any:
        send = partial(by_boto3, stubber, event_name, request)
        if not event_name:
            return send()  # a call of the wire
        service, operation = event_name.split(".")[1:]
        id, path, body = str(request.headers["amz-sdk-invocation-id"]), urlsplit(request.url).path, request.body or b""
        no_reply = ReadTimeoutError(endpoint_url="https://aws")
        return world.calls.take(Attempt(id, service, operation, body, path, send, _to_boto3, no_reply))

    with (
        patch.object(_Connection, "_answered", take_of_wire),
        patch.object(BotocoreStubber, "__call__", take_of_boto3),
        time_machine.travel(BEGIN, tick=False) as clock,
    ):
        world = World(clock)
        yield world


# The oracle -------------------------------------------------------------------------------------------------------


class Oracle:
    """The runs of one request with a fault. `reads` are requests whose replies must not be half."""

    def __init__(
        self,
        world: World,
        request: Request,
        reads: dict[str, Request],
        families: dict[str, Family],
        *,
        always: bool,
        in_parts: bool,
    ) -> None:
        self._world, self._request, self._reads, self._known, self._always = world, request, reads, families, always
        self._in_parts = in_parts
        self.families: set[str] = set()
        self.refusals: set[str] = set()
        self._ends: dict[str, set[str] | str] = {}
        self._between: set[str] = set()
        self._steps: list[State] = []
        world.begin()
        world.back()
        self._start = world.state()
        usual, calls = world.run(request)
        assert usual is not None
        self.usual = usual
        self.writes = world.state().counted() != self._start.counted()
        self.calls = [*calls.made.values()]

    def _learn(self) -> None:
        """See what readers are shown before and after the undisturbed request, and what is stored in the end."""
        world = self._world
        world.back()
        self._before = self._shown()
        world.back()
        world.run(self._request)
        self._after = self._shown()
        self._steps = [world.state(), *world.settle()]
        self._counted = [state.counted() for state in self._steps]
        assert not world.untidy(), f"without a fault: {world.untidy()}"

    def cells(self, faults: tuple[str, ...]) -> list[tuple[str, str]]:
        """The calls with the faults that make a difference there."""
        at_reads = [fault for fault in faults if fault in (*_OF_READS, "at once")]
        at_writes = [fault for fault in faults if fault != "never"]
        cells = [(at, fault) for at in self.calls for fault in (at_reads if at.startswith(_READS) else at_writes)]
        return cells + [("the event", "never")] * ("never" in faults and not self._always)

    def problem(self, at: str, fault: str) -> str | None:
        """Run a cell. Returns what is wrong."""
        world, usual = self._world, self.usual
        if not self._steps:
            self._learn()
        world.back()
        reply, calls = (usual, None) if fault == "never" else world.run(self._request, at, fault)
        if calls is not None and not calls.met:
            return f"the call is not made, but {[*calls.made.values()]}"
        if reply is not None and reply.status == 503 and not _AGAIN.search(str(reply)):
            return f"503 does not say when to try again: {reply}"
        answers = reply is not None and reply.status == usual.status
        # An entry that could not be looked up says so.
        if reply and answers and not self.writes and _parts(reply) != _parts(usual) and b'"error"' not in reply.body:
            return f"the reply is another: {reply}"
        if reply is None or reply.status == 503 or self._always:
            if half := self._half():
                return half
            world.clock.shift(_RETRY_AFTER)
            reply, _ = world.run(self._request)
            assert reply is not None
        if _outcome(reply) != _outcome(usual):
            if reply.status not in (200, 302, 400, 401, 404, 409, 422):
                return f"the reply is {reply}"
            self.refusals.add(_outcome(reply))
        end = world.state()
        key = repr(sorted(end.counted().items()))
        if key not in self._ends:
            self._ends[key] = self._families(end)
        found = self._ends[key]
        if isinstance(found, str):
            return f"the end is another: {found}"
        self.families |= found
        return None

    def _families(self, end: State) -> set[str] | str:
        """The families that explain an end, or how it differs."""
        if end.counted() == self._counted[0]:
            return set()
        for step, state in enumerate(self._world.settle(), 1):
            if state.counted() == self._counted[step]:
                return set()
            end = state
        usual = self._steps[-1]
        lines = [f"+ {item}" for item in end.plain() - usual.plain()] + [
            f"- {item}" for item in usual.plain() - end.plain()
        ]
        found = {line: {word for word, family in self._known.items() if family.explains(line)} for line in lines}
        ignored = "|".join(f"(?:{self._known[word].items})" for word in set().union(*found.values())) or "$."
        if all(found.values()) and end.counted(ignored) == usual.counted(ignored):
            return set().union(*found.values())
        unexplained = [line for line in lines if not found[line]] or [
            *(end.counted(ignored) - usual.counted(ignored)),
            "<-",
            *(usual.counted(ignored) - end.counted(ignored)),
        ]
        return "".join(f"\n    {line[:250]}" for line in unexplained)

    def _half(self) -> str | None:
        """What a reader sees that is neither from before nor from after the request. Of a request that is made `in
        parts`, a list can show some items from before and some from after.
        """
        state = self._world.state()
        key = repr(sorted(state.counted().items()))
        if key in self._between:
            return None
        self._between.add(key)
        if not self._in_parts and (differing := self._is_half_audited(state)):
            return differing
        for name, seen in self._shown().items():
            before, after = self._before[name], self._after[name]
            if not (seen <= before | after if self._in_parts else seen in (before, after)):
                return f"{name} shows {seen - before - after or seen}"
        return None

    def _is_half_audited(self, state: State) -> str | None:
        """What is wrong if the change is made without its entry in the audit, or the entry without the change."""
        states = (self._start, self._steps[0], state)
        before, after, changed = (one.counted("audit ") for one in states)
        unaudited, audited, entries = (one.counted("(?!audit )") for one in states)
        if before == after or unaudited == audited:
            return None
        if (changed, entries) in ((after, unaudited), (before, audited)):
            return f"the audit has {entries - unaudited}, but {changed - before} is stored"
        return None

    def _shown(self) -> dict[str, set[str]]:
        with self._world.aside():
            return {name: _parts(request()) for name, request in self._reads.items()}


def _parts(reply: Reply) -> set[str]:
    """A reply, or the items of a list. A request that changes several can have changed some of them."""
    body: Any = reply.body.decode(errors="replace")
    if reply.status == 200 and body.startswith(("{", "[")):
        lists = (
            [found for found in json.loads(body).values() if isinstance(found, list)]
            if body[0] == "{"
            else [json.loads(body)]
        )
        if lists:
            return {_UNSHOWN.sub("", _ID.sub("<>", json.dumps(item))) for item in lists[0]}
    return {f"{reply.status} {_UNSHOWN.sub('', _ID.sub('<>', body))}"}


def _outcome(reply: Reply) -> str:
    """The status and the code of an error."""
    code = re.search(rb'"(?:code|error)": ?"(\w+)"', reply.body) or re.search(
        r"error=(\w+)", reply.headers.get("location", "")
    )
    text = code[1] if code else ""
    return f"{reply.status} {text.decode() if isinstance(text, bytes) else text}".lower().strip()
