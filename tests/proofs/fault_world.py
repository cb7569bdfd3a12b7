"""The stores of a local cloud behind the proxy, and handlers in this process that use them.

The layer's own clients make their usual attempts, without a pause between them. While a store is silent, their
time-outs are divided by SCALE, so that a call takes half a second and not five. test_faults waits for the real
time-outs.
"""

import http.client
import json
import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from botocore.retries.quota import RetryQuota
from botocore.retries.standard import ExponentialBackoff
from urllib3 import Timeout

from larder import aws, clock, deadline
from larder.accounts.models import User
from larder.accounts.service import create_user
from larder.accounts.sessions import start_session
from larder.api_keys.keys import create_key
from larder.api_keys.models import ARTIFACT_ACTIONS, TEAM_ACTIONS, ApiKey
from larder.api_keys.properties import NewKey
from larder.aws import boto, wire
from larder.aws.connections import Connection
from larder.errors import TryAgain
from larder.instance import restart
from larder.settings import settings
from larder.teams.models import Team
from larder.teams.teams import create_team
from larder.web.replies.errors import code_of
from local.child_processes import ChildProcesses
from local.environment import cloud_environment, process_environment
from local.http_server import listen
from local.template import load_template
from tests.addresses import prove_address
from tests.layer_on import forget
from tests.proofs.fault_proxy import SERVICES, Plan, Proxy, Reply, Request, json_reply
from tests.requests import Browser, Context, Sender, browser_of, invoke
from tests.requests import Reply as ClientReply

SCALE = 10
"""The divisor for the layer's time-outs and deadlines."""

FUNCTION_S = 25
"""The time limit of a function of the API."""

_START_S = 60
_LATE_S = 0.1
"""The delay of a late reply: shorter than the layer's time-outs."""
_ROOT = Path(__file__).resolve().parents[2]
_SECRET_ARN = "arn:aws:secretsmanager:eu-central-1:000000000000:secret:larder-signing-secret"
_INVOCATION = re.compile(r"/2015-03-31/functions/([^/]+)/invocations")


@dataclass
class World:
    proxy: Proxy
    objects: Path
    """The folder with a file for each object in S3."""
    events: Path
    """The folder in which S3 writes its events."""
    handed_over: list[tuple[str, dict[str, object]]] = field(default_factory=list)
    """The asynchronous invocations: the name of the function, and the payload."""
    mail: list[str] = field(default_factory=list)
    """The subjects of the messages that SES accepted."""
    patched: pytest.MonkeyPatch = field(default_factory=pytest.MonkeyPatch)

    def objects_of(self, owner: str) -> list[str]:
        """The names of all versions: `<hash>/<upload id>@<version>`."""
        folder = self.objects / "artifacts" / owner
        return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())

    def option(self, name: str, value: object) -> None:
        self.patched.setenv(f"LARDER_{name.upper()}", str(value))
        settings.cache_clear()

    def deliver_events(self) -> None:
        """Invoke the function with the waiting events of S3, the oldest last."""
        for file in sorted(self.events.glob("*.json"), reverse=True):
            event = json.loads(file.read_text())
            # Lambda sends an event again that the function could not handle yet, such as that of a request in progress.
            if function("artifacts.commit_upload.handler", event).status == 200:
                file.unlink()

    def run_jobs(self) -> None:
        """Carry out the asynchronous invocations."""
        while self.handed_over:
            name, payload = self.handed_over.pop(0)
            handler = {
                settings().email_function: "accounts.send_account_email.handler",
                settings().removal_function: "artifacts.remove_artifacts.handler",
            }[name]
            function(handler, payload)


SCHEDULED = (
    "artifacts.sweep_artifacts.handler",
    "accounts.sweep_deleted_users.handler",
    "api_keys.sweep_expired_keys.handler",
    "teams.sweep_deleted_teams.handler",
)


def function(handler: str, event: object = None) -> ClientReply:
    """Invoke a function that has no route. Returns 503 for TryAgain, after which Lambda would invoke it again."""
    try:
        invoke(handler, event or {}, Context(remaining_ms=250_000))  # type: ignore[arg-type]
    except TryAgain as error:
        body = json.dumps({"code": code_of(error)}).encode()
        return ClientReply(503, {"retry-after": "by Lambda", "content-type": "application/json"}, body)
    return ClientReply(200, {}, b"{}")


@contextmanager
def later(by: timedelta) -> Iterator[None]:
    """A context in which the layer's clock is ahead. The clocks of the stores stay the same."""
    now = clock.now
    with patch.object(clock, "now", lambda: now() + by):
        yield


@contextmanager
def running(folder: Path) -> Iterator[World]:
    """Create `folder`, start stores in it, and connect the layer to them through the proxy."""
    folder.mkdir(parents=True)
    events = folder / "events"
    (template_bucket,) = load_template(environ={}).buckets
    credentials = ("LOCALFAULTS", "the-secret-key-of-the-faults")
    listeners = {name: listen("127.0.0.1", 0) for name in ("dynamodb", "s3")}
    ports = {name: listener.getsockname()[1] for name, listener in listeners.items()}
    world: World

    def invoked(request: Request) -> Reply:
        name = _INVOCATION.fullmatch(request.path)
        assert name is not None, request.path
        world.handed_over.append((name[1], json.loads(request.body)))
        return Reply(202, "Accepted", [], b"")

    def secret(_: Request) -> Reply:
        edge = {"id": "ab", "key": "0" * 64}
        text = json.dumps({"current": "the-signing-secret-of-the-faults", "previous": "", "edge": edge})
        return json_reply(200, {"SecretString": text, "CreatedDate": 1_700_000_000})

    def mailed(request: Request) -> Reply:
        content = json.loads(request.body)["Content"]["Simple"]
        world.mail.append(content["Subject"]["Data"])
        return json_reply(200, {"MessageId": secrets.token_hex(8)})

    proxy = Proxy(ports, {"lambda": invoked, "secretsmanager": secret, "sesv2": mailed}, late_s=_LATE_S)
    world = World(proxy, folder / "s3" / template_bucket, events)
    urls = {name: f"http://127.0.0.1:{port}" for name, port in proxy.ports.items()}
    environment = cloud_environment(
        load_template(environ={}).environment,
        credentials=credentials,
        signing_secret=_SECRET_ARN,
        dynamodb_url=urls["dynamodb"],
        lambda_url=urls["lambda"],
        s3_url=urls["s3"],
        edge={},
    )
    environment |= {
        "LARDER_AWS_CLIENT": os.environ.get("LARDER_AWS_CLIENT", "wire"),
        "AWS_ENDPOINT_URL_SECRETS_MANAGER": urls["secretsmanager"],
        "AWS_ENDPOINT_URL_SESV2": urls["sesv2"],
        "LARDER_SCRYPT_COST": "1024",
        "LARDER_SIGN_UP_POLICY": "open",
        "LARDER_TRUSTED_PROXY_HOPS": "1",
    }
    template = ["--template", str(_ROOT / "template.yaml")]
    hears, wake_fd = os.pipe()
    arguments = {
        "dynamodb": ["--folder", str(folder / "dynamodb"), "--expiry-seconds", "3600"],
        "s3": ["--folder", str(folder / "s3"), "--events", str(events), "--wake-fd", str(wake_fd)],
    }
    modules = {"dynamodb": "local.tables", "s3": "local.object_storage"}
    children = ChildProcesses()
    for name, listener in listeners.items():
        children.start(
            modules[name],
            ["--socket", str(listener.fileno()), *template, *arguments[name]],
            environ=process_environment(environment),
            descriptors=[listener.fileno(), wake_fd],
            log=folder / f"{name}.log",
        )
    for port in ports.values():
        _wait_until_ready(port)
    for name, value in environment.items():
        world.patched.setenv(name, value)
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN"):
        world.patched.delenv(name, raising=False)
    world.patched.setattr(ExponentialBackoff, "delay_amount", lambda *_: 0)
    # A client stops retrying after many failures. Each cell must see only its own failures.
    world.patched.setattr(RetryQuota, "acquire", lambda *_: True)
    world.patched.setattr(wire._Quota, "take", lambda *_: 1)
    world.patched.setattr("random.random", lambda: 0.0)
    _reset_layer()
    for service in ("dynamodb", "s3"):
        _bypass_unwatched(proxy, boto.client(service), service, ports[service])
    try:
        yield world
    finally:
        world.patched.undo()
        _reset_layer()
        proxy.close()
        children.kill_all()
        for listener in listeners.values():
            listener.close()
        os.close(hears)
        os.close(wake_fd)


def _wait_until_ready(port: int) -> None:
    deadline = time.monotonic() + _START_S
    while True:
        asking = http.client.HTTPConnection("127.0.0.1", port, timeout=_START_S)
        try:
            asking.request("GET", "/")
            asking.getresponse().read()
        except OSError:
            assert time.monotonic() < deadline, "a store did not start in time"
            time.sleep(0.1)
        else:
            return
        finally:
            asking.close()


def _bypass_unwatched(proxy: Proxy, client: Any, service: str, port: int) -> None:
    """Send calls outside of `failing` directly to the store, because most calls only set up and check a scenario."""
    watched = f"http://127.0.0.1:{proxy.ports[service]}"

    def bypass(request: Any, **_: object) -> None:
        if not proxy.watches:
            request.headers["Host"] = watched.removeprefix("http://")
            request.url = request.url.replace(watched, f"http://127.0.0.1:{port}", 1)

    client.meta.events.register_first("before-send", bypass)


@contextmanager
def hasty() -> Iterator[None]:
    """A context in which the time-outs of the layer's clients are SCALE times shorter."""
    clients = [boto.client(service) for service in SERVICES]
    begins_none_after_s = FUNCTION_S - deadline.KEPT_BACK_S
    try:
        for client in clients:
            _wait(client, 1 / SCALE)
        _close_wire()
        with (
            patch.object(Connection, "__init__", _hasty_connection),
            patch.object(deadline, "KEPT_BACK_S", FUNCTION_S - begins_none_after_s / SCALE),
            patch.object(deadline, "SHORT_S", deadline.SHORT_S / SCALE),
        ):
            yield
    finally:
        for client in clients:
            _wait(client, 1)
        _close_wire()


def _close_wire() -> None:
    """Close the kept connections of larder.aws.wire, so that the next calls have their own time-outs."""
    for client in aws._wires.values():
        client.close()


_connect = Connection.__init__


def _hasty_connection(connection: Connection, host: str, port: int, *, secure: bool, read_timeout_s: float) -> None:
    _connect(connection, host, port, secure=secure, read_timeout_s=read_timeout_s / SCALE)


def _wait(client: Any, factor: float) -> None:
    """Multiply the configured time-outs of a client, and of its open connections, by `factor`."""
    config, manager = client.meta.config, client._endpoint.http_session._manager
    waits = Timeout(connect=config.connect_timeout * factor, read=config.read_timeout * factor)
    manager.connection_pool_kw["timeout"] = waits
    for key in manager.pools.keys():  # noqa: SIM118 - it cannot be iterated over
        manager.pools[key].timeout = waits


def _reset_layer() -> None:
    restart()
    forget()


class Subject:
    """A user, team, key and address that no other cell uses, and the requests that were sent with them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.route = ""
        self.plans: list[Plan] = []
        self.times_sent = 0
        self.crashes = 0
        self.disturbed = False
        self.refused_as_done = False
        self.tag = secrets.token_hex(6)
        self.hash = f"{self.tag}abcdef"
        self.address = f"2001:db8:{self.tag[:4]}:{self.tag[4:8]}::1"
        now = clock.now()
        self.user: User = create_user(self.email(), "Ada", password="the first password", now=now)
        self.team: Team = create_team("Acme", f"t-{self.tag}", owner_user_id=self.user.id, now=now)
        self.key, self.token = self.new_key()
        self.send = self.sender(self.token)
        self.owners = [self.team.id, self.user.id]

    def email(self, name: str = "ada") -> str:
        return f"{name}@{self.tag}.example"

    def new_key(self, **more: Any) -> tuple[ApiKey, str]:
        permissions = {"artifacts": ARTIFACT_ACTIONS, "teams": TEAM_ACTIONS, "trust": ("manage",)}
        new = NewKey(user_id=self.user.id, permissions=permissions, **more)
        return create_key(new, now=clock.now())

    def sender(self, token: str | None) -> Sender:
        return Sender(token, slug=self.team.slug)

    def session(self, user: User | None = None) -> str:
        """Start a session. Returns its token."""
        return start_session(user or self.user, now=clock.now())[1]

    def lose_events(self) -> None:
        """Delete the waiting events for objects of these owners."""
        for file in self.world.events.glob("*.json"):
            if any(f"artifacts/{owner}/" in file.read_text() for owner in self.owners):
                file.unlink()

    def from_its_address(self) -> dict[str, str]:
        return {"x-forwarded-for": f"{self.address}, 192.0.2.1"}

    def ask(self, method: str, path: str, body: object = None, *, token: str | None = None) -> ClientReply:
        """Send a request to `/api/auth` as a program does, with the token of a session."""
        send, headers = Sender(token), self.from_its_address()
        if method == "GET":
            return send(method, f"/api/auth{path}", headers=headers)
        return send(method, f"/api/auth{path}", json_body=body or {}, headers=headers)

    def browser(self) -> Browser:
        return browser_of(self.user)

    def prove_address(self) -> None:
        """As operators and creators of teams need."""
        self.user = prove_address(self.user)

    def uses_taken(self) -> int:
        """How often the store took a use of a key, including calls whose reply got lost."""
        return self.tries_of("UpdateItem api-keys")

    def tries_of(self, name: str) -> int:
        """How often the store carried out calls of this name."""
        return sum(
            times
            for plan in self.plans
            for call, times in plan.carried_out.items()
            if f"{call.operation} {call.target}" == name
        )


def in_hours(hours: float) -> timedelta:
    return timedelta(hours=hours)
