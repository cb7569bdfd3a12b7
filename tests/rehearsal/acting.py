"""Every function under its own role: the permissions that it uses, and the calls that are refused.

The emulator refuses most calls itself. It does not check two permissions (docs/decisions/testing.md), so this module
checks them with the same policies: to learn that an object is missing, and to send mail from an address.
"""

import os
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import parseaddr
from pathlib import Path
from threading import RLock
from typing import Any, NoReturn
from urllib.parse import parse_qs, urlsplit

from botocore.awsrequest import AWSPreparedRequest, AWSRequest, AWSResponse
from botocore.exceptions import ClientError
from botocore.handlers import BUILTIN_HANDLERS

from larder import aws
from larder.aws import boto
from local.template import ACCOUNT_ID
from tests.emulator.aws_behaviour import ANY_TIME
from tests.emulator.process import Emulator, emulator
from tests.permissions import Grant, function_of, needs
from tests.rehearsal.roles import REGION, Permission
from tests.rehearsal.stack import Keys, Stack

ROLES = "roles"
"""The value of the variable ENGINE for a rehearsal."""

_CALL, _SENT = "larder_call", "larder_sent"
_READS = ("GetObject", "HeadObject")
_LISTING = ("s3:ListBucket", "s3:ListBucketVersions")
"""Without it, S3 refuses to say that an object or a version is missing."""
_REFUSALS = ("AccessDenied", "AccessDeniedException")


@dataclass(frozen=True, slots=True)
class Refusal:
    """A call that the role of a function did not allow, because one of `grants` is missing."""

    function: str
    operation: str
    grants: frozenset[Grant]
    reason: str

    def __str__(self) -> str:
        grants = ", ".join(f"{action} on {target}" for action, target in sorted(self.grants))
        return f"template.yaml does not let {self.function} {self.operation} ({grants}): {self.reason}"


@dataclass(slots=True)
class Rehearsal:
    """A running emulator, and the calls of the functions to it."""

    emulator: Emulator
    stack: Stack
    acting: str | None = None
    used: dict[Permission, set[str]] = field(default_factory=dict)
    """For each permission, the node ids of the tests that used it."""
    refused: list[Refusal] = field(default_factory=list)

    def call(self, function: str, service: str, operation: str, grant: Grant, **parameters: object) -> None:
        """Make a call as Lambda does with the role of a function. Fails if it is refused."""
        self.note_use(function, frozenset([grant]))
        client = self.stack.client(service, self.stack.keys_of(function))
        try:
            getattr(client, operation)(**parameters)
        except ClientError as error:
            self.refuse(Refusal(function, operation, frozenset([grant]), str(error)))

    def may_send(self, function: str, resource: str, sender: str) -> bool:
        """Whether a function may send mail from this address. SES checks it for one of its resources."""
        arn = f"arn:aws:ses:{REGION}:{ACCOUNT_ID}:{resource}"
        return self.stack.allows(function, "ses:SendEmail", arn, {"ses:fromaddress": sender})

    def refuse(self, refusal: Refusal) -> NoReturn:
        self.refused.append(refusal)
        raise AssertionError(str(refusal))

    def note_use(self, function: str, grants: frozenset[Grant]) -> None:
        test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
        for action, target in grants:
            self.used.setdefault(Permission(function, action, target), set()).add(test)


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of a function, from its parameters to its reply."""

    function: str
    operation: str
    grants: frozenset[Grant]
    parameters: dict[str, Any]

    def refused(self, reason: str) -> Refusal:
        return Refusal(self.function, self.operation, self.grants, reason)


_now: Rehearsal | None = None
_turn = RLock()
"""One function at a time has its role: its keys are those of all clients of this process."""


@contextmanager
def rehearsal(folder: Path) -> Iterator[Rehearsal]:
    """An emulator with the stack, and all clients of this process connected to it."""
    global _now  # noqa: PLW0603 - the hooks below are global too
    environ = {ANY_TIME: "true", "MINISTACK_REGION": REGION}
    with emulator(folder / "emulator", environ, python=Path(sys.executable)) as running:
        # Existing clients have no hooks, and other keys.
        aws.reset()
        try:
            _now = Rehearsal(running, Stack(running))
            _now.stack.make()
            yield _now
        finally:
            _now = None
            aws.reset()


def rehearsing() -> Rehearsal | None:
    return _now


@contextmanager
def under_its_role(handler: str) -> Iterator[None]:
    """A context in which the layer's clients have the keys of this function's role. Fails if a call is refused.

    Does nothing outside of a rehearsal.
    """
    if _now is None:
        yield
        return
    function = function_of(handler)
    with _turn:
        before, seen = _now.acting, len(_now.refused)
        try:
            with _presenting(_now.stack.keys_of(function)):
                _now.acting = function
                yield
        finally:
            _now.acting = before
            if refused := _now.refused[seen:]:
                raise AssertionError("\n".join(map(str, refused)))


@contextmanager
def _presenting(keys: Keys) -> Iterator[None]:
    # Every client of the session signs with this object.
    presented: Any = boto._session().get_credentials()
    before = presented.access_key, presented.secret_key, presented.token
    presented.access_key, presented.secret_key, presented.token = keys
    try:
        yield
    finally:
        presented.access_key, presented.secret_key, presented.token = before


def follow(url: str, method: str, body: bytes = b"") -> int:
    """Request a URL that a function signed, as its client does. Returns the status of the reply.

    Fails if the function's role, whose keys signed it, does not allow it.
    """
    assert _now is not None
    address = urlsplit(url)
    (credential,) = parse_qs(address.query)["X-Amz-Credential"]
    function = _now.stack.holder_of(credential.partition("/")[0])
    operation = {"GET": "GetObject", "PUT": "PutObject"}[method]
    arguments = {"Key": address.path.removeprefix("/")}
    if version := parse_qs(address.query).get("versionId"):
        arguments["VersionId"] = version[0]
    needed = needs(operation, arguments)
    grants = frozenset(one for one in needed if one[0] not in _LISTING)
    _now.note_use(function, grants)
    reply = _now.emulator.ask(method, url, body=body)
    # An invalid signature is a different error.
    if b"<Code>AccessDenied</Code>" in reply.read():
        _now.refuse(Refusal(function, f"sign an address for {method}", grants, "AccessDenied"))
    return reply.status


# Hooks of botocore, in the order of a call.


def _begin(params: dict[str, Any], model: Any, context: MutableMapping[str, Any], **_: object) -> None:
    if _now is None or _now.acting is None:
        return
    grants = frozenset(needs(model.name, params))
    context[_CALL] = call = _Call(_now.acting, model.name, grants, params)
    if model.name == "SendEmail":
        sender = parseaddr(params["FromEmailAddress"])[1]
        # As in an account where the sender has a configuration set.
        for resource in (f"identity/{sender}", "configuration-set/some"):
            if not _now.may_send(call.function, resource, sender):
                _now.refused.append(call.refused(f"not on {resource}"))


def _leave(request: AWSRequest, **_: object) -> None:
    # A reply that a test gives instead of Amazon does not get here.
    call: _Call | None = request.context.get(_CALL)
    if _now is not None and call is not None:
        request.context[_SENT] = True
        _now.note_use(call.function, call.grants - _asked_when_missing(call))


def _lead(request: AWSPreparedRequest, **_: object) -> AWSResponse | None:
    if _now is None:
        return None
    _now.stack.note_write(request)
    headers = dict(request.headers.items())
    # Headers and body are sent together, without waiting for a 100.
    headers.pop("Expect", None)
    reply: Any = _now.emulator.ask(request.method, request.url, body=request.body, headers=headers)
    return AWSResponse(request.url, reply.status, reply.headers, reply)


def _end(http_response: Any, parsed: MutableMapping[str, Any], context: MutableMapping[str, Any], **_: object) -> None:
    call: _Call | None = context.get(_CALL)
    if _now is None or call is None or not context.get(_SENT):
        return
    problem = parsed.get("Error", {})
    if http_response.status_code == 403 or problem.get("Code") in _REFUSALS:
        _now.refused.append(call.refused(problem.get("Message") or "Forbidden"))
    if http_response.status_code == 404 and (asked := _asked_when_missing(call)):
        _now.note_use(call.function, asked)
        bucket = f"arn:aws:s3:::{call.parameters['Bucket']}"
        if not all(_now.stack.allows(call.function, action, bucket) for action, _ in asked):
            _now.refused.append(call.refused("S3 answers 403 and not 404"))


def _asked_when_missing(call: _Call) -> frozenset[Grant]:
    if call.operation not in _READS:
        return frozenset()
    return frozenset(grant for grant in call.grants if grant[0] in _LISTING)


BUILTIN_HANDLERS.extend(
    [("provide-client-params", _begin), ("request-created", _leave), ("before-send", _lead), ("after-call", _end)]
)
