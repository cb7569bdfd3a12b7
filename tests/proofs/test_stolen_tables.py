"""Stolen tables and logs contain no key: not complete, not in parts, not in another encoding."""

import base64
import json
import logging
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import httpx
import pytest

from larder import aws, clock
from larder.api_keys.keys import create_key, revoke_key, rotate_key
from larder.api_keys.models import RateLimit, Refill
from larder.api_keys.properties import NewKey
from larder.api_keys.verification import verify
from larder.hashing import hash_key
from local.template import load_template
from tests.e2e.cloud import LocalCloud
from tests.faults import answering, error, unreachable
from tests.proofs.stamped import PREFLIGHT, http_client
from tests.requests import Cloud, Reply, Sender, deliver

READ = {"artifacts": ("read",)}
START_LENGTH = 6
"""Characters after the prefix that the table keeps in `start`."""
RUN = re.compile(rf"[A-Za-z0-9_-]{{{START_LENGTH + 1},}}")
"""A run of characters that a key can contain, longer than `start`."""
PREFIXES = (None, "ci_", "a-prefix-of-32-characters-length", "k")
KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "counted": {"remaining": 50, "refill": Refill(interval_ms=1, amount=50)},
    "limited": {"rate_limit": RateLimit(enabled=True, window_ms=86_400_000, max_requests=1)},
    "expired": {"expires_in_s": 1},
    "reading": {"permissions": READ},
    "last use": {"remaining": 1},
    "with metadata": {"metadata": {"repo": "web", "job": [1, 2]}, "name": "ci"},
}


class Secrets:
    """Every key that a test creates. Only its `start` may be found: the prefix and the first characters after it."""

    def __init__(self) -> None:
        self.raw: list[tuple[str, str | None]] = []

    def made(self, raw: str, prefix: str | None) -> str:
        self.raw.append((raw, prefix))
        return raw

    def found_in(self, text: str) -> list[str]:
        """The parts of the keys that `text` contains."""
        length = START_LENGTH + 1
        pieces = {run[at : at + length] for run in set(RUN.findall(text)) for at in range(len(run) - length + 1)}
        found = [piece for piece in self._pieces() if piece in pieces]
        return found + [word for word in self._other_writings() if word in text]

    def _pieces(self) -> Iterator[str]:
        """Every run of seven characters with at least one after `start`, the prefix and the six characters after it."""
        length = START_LENGTH + 1
        for raw, prefix in self.raw:
            assert RUN.fullmatch(raw), raw
            for at in range(len(prefix or ""), len(raw) - length + 1):
                yield raw[at : at + length]

    def _other_writings(self) -> Iterator[str]:
        for raw, prefix in self.raw:
            for secret in (raw.encode(), raw.removeprefix(prefix or "").encode()):
                yield secret.hex()[:24]
                yield base64.b64encode(secret).decode()[:24]
                yield secret[::-1].decode()[:12]


def make_and_use(team: Cloud, secrets: Secrets) -> None:
    """Keys of every kind, used until some are refused, rotated and revoked."""
    now = clock.now()
    for number, (kind, properties) in enumerate(KINDS.items()):
        prefix = PREFIXES[number % len(PREFIXES)]
        new = NewKey(user_id=team.user.id, team_id=team.team.id, prefix=prefix, **properties)
        key, raw = create_key(new, now=now)
        secrets.made(raw, prefix)
        for _ in range(3):
            verify(key.key_hash, READ, now=clock.now())
        rotated = rotate_key(key.id, overlap_s=60, now=clock.now())
        if rotated is not None:
            secrets.made(rotated[1], prefix)
            if kind == "plain":
                revoke_key(rotated[0])


def stolen() -> list[dict[str, Any]]:
    """Every item of every table of the template, in DynamoDB's own JSON."""
    items: list[dict[str, Any]] = []
    for table in load_template(environ={}).tables:
        pages = aws.dynamodb().get_paginator("scan").paginate(TableName=table.name)
        items += [item for page in pages for item in page["Items"]]
    return items


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)
    elif isinstance(value, str):
        yield value


def check_tables(secrets: Secrets) -> int:
    items = stolen()
    # Small bodies are bytes.
    assert secrets.found_in(json.dumps(items, default=lambda body: body.decode("latin-1"))) == []
    hashes = {item["key_hash"]["S"] for item in items if "key_hash" in item}
    assert {hash_key(raw) for raw, _ in secrets.raw} & hashes, "the keys are not in these tables"
    return len(items)


def tries_every_string(send: Sender) -> int:
    """No string of the tables is itself taken for a key."""
    values = sorted({text for item in stolen() for text in strings(item)})
    for value in values:
        assert not verify(hash_key(value), {}, now=clock.now()).valid
    for value in values:
        if value.isascii() and value.isprintable():
            reply = Sender(value, slug=send.slug)("GET", "/v8/artifacts/status")
            assert reply.status == 401
    return len(values)


def test_the_tables_hold_no_key(cloud: Cloud) -> None:
    secrets = Secrets()
    secrets.made(cloud.token, None)
    make_and_use(cloud, secrets)
    check_tables(secrets)
    assert tries_every_string(cloud.send) > 50


def test_the_proof_finds_a_key_in_full_in_parts_and_encoded() -> None:
    secrets, raw = Secrets(), "ci_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    secrets.made(raw, "ci_")
    for leak in (
        raw,
        raw[:10],
        raw[20:27],
        f'{{"authorization": "Bearer {raw}"}}',
        raw.encode().hex(),
        base64.b64encode(raw[3:].encode()).decode(),
        raw[::-1],
    ):
        assert secrets.found_in(leak), leak
    assert secrets.found_in(f"{raw[:9]} {hash_key(raw)} ci_") == []


@pytest.mark.thorough
@pytest.mark.slow
def test_the_tables_files_and_logs_of_the_local_cloud_hold_no_key(
    local_cloud: LocalCloud, new_team: Cloud, report_lines: list[str]
) -> None:
    """The layer in this process creates keys. Valid and invalid requests use them over HTTP, to log all errors."""
    secrets = Secrets()
    secrets.made(new_team.token, None)
    make_and_use(new_team, secrets)
    with http_client(1) as http:
        replies = misuse(http, local_cloud.url, new_team, [raw for raw, _ in secrets.raw])
    statuses = {reply.status_code for reply in replies}
    assert {200, 202, 400, 401, 403, 404, 415, 429} <= statuses, statuses
    for reply in replies:
        assert secrets.found_in(reply.text + repr(reply.headers)) == []
    number = check_tables(secrets)
    files = [path for path in local_cloud.data.rglob("*") if path.is_file()]
    for path in files:
        assert secrets.found_in(path.read_text(errors="replace")) == [], path
    log = (local_cloud.data / "logs" / "functions.log").read_text()
    assert new_team.key.id in log, "these requests are not in the log"
    tables = [path for path in files if path.parent.name == "dynamodb"]
    assert any(new_team.key.key_hash in path.read_text(errors="replace") for path in tables), (
        "the file of the tables is not among these files"
    )
    assert secrets.found_in(local_cloud.log_text()) == []
    report_lines.append(
        f"{len(secrets.raw)} keys, {len(replies)} replies: none of them in {number} items, "
        f"{len(files)} files with {sum(path.stat().st_size for path in files)} bytes, "
        f"{len(log.splitlines())} lines of the functions' log"
    )


def verify_bodies(raw: str) -> list[bytes]:
    """A key in the body of POST /api/auth/api-key/verify, in the right place and in places that cause an error."""
    bodies: list[Any] = [
        {"key": raw},
        {"key": raw, "permissions": {"artifacts": ["administer"]}},
        {"key": raw, "permissions": 1},
        {"key": [raw]},
        {"key": raw * 40},
        [raw],
        raw,
    ]
    return [*(json.dumps(body).encode() for body in bodies), b'{"key": "' + raw.encode()]


VERIFY = "/api/auth/api-key/verify"


def misuse(http: httpx.Client, url: str, team: Cloud, tokens: list[str]) -> list[httpx.Response]:
    replies = []
    for token in [*tokens, "w" * 64]:
        bearer = {"authorization": f"Bearer {token}"}
        here: dict[str, Any] = {"params": {"slug": team.team.slug}, "headers": bearer}
        elsewhere: dict[str, Any] = {**here, "params": {"slug": "another-team"}}
        absent = f"{url}/v8/artifacts/absent"
        replies += [
            http.get(f"{url}/v8/artifacts/status", **here),
            http.get(absent, **here),
            http.head(absent, **here),
            http.get(absent, **elsewhere),
            http.get(absent, params={"slug": team.team.slug}, headers={"authorization": token}),
            http.get(absent, headers={**bearer, "x-artifact-client-interactive": "2"}),
            http.options(absent, **{**here, "headers": {**bearer, **PREFLIGHT}}),
            http.put(absent, content=b"artifact", **here),
            http.post(f"{url}/v8/artifacts", json={"hashes": 1}, **here),
            http.post(f"{url}/v8/artifacts/events", json=[{}], **here),
        ]
        for body in verify_bodies(token):
            for media_type in ("application/json", "text/plain"):
                headers = {"content-type": media_type, "x-api-key": token}
                replies.append(http.post(f"{url}{VERIFY}", content=body, headers=headers))
    return replies


def post_verify(body: bytes) -> Reply:
    headers = [("content-type", "application/json"), ("content-length", str(len(body)))]
    return deliver("POST", VERIFY, "", headers, body)


def failures() -> list[AbstractContextManager[object]]:
    """The table of keys throttles, refuses or cannot be reached, for writes, for reads or for all calls."""
    return [
        answering("dynamodb", "UpdateItem", error("ThrottlingException")),
        answering("dynamodb", "UpdateItem", error("ValidationException")),
        answering("dynamodb", "BatchGetItem", error("ValidationException")),
        unreachable("dynamodb", "UpdateItem"),
        unreachable("dynamodb", "*"),
    ]


def test_log_lines_of_every_logger_and_error_bodies_hold_no_key(
    cloud: Cloud, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """All loggers of the process log at their lowest level, including those of boto3, and some calls to AWS fail."""
    caplog.set_level(logging.DEBUG)
    secrets = Secrets()
    secrets.made(cloud.token, None)
    make_and_use(cloud, secrets)
    replies: list[Reply] = []

    # Before the requests to the cache: after a refused one, a read can still run in the background, and must not count
    # as a call of the next function.
    for raw, _ in secrets.raw:
        replies += [post_verify(body) for body in verify_bodies(raw)]
    for failing in failures():
        with failing:
            replies.append(post_verify(json.dumps({"key": cloud.token}).encode()))
    for raw, _ in secrets.raw:
        send = Sender(raw, slug=cloud.team.slug)
        replies.append(send("GET", "/v8/artifacts/absent"))
        replies.append(send("PUT", "/v8/artifacts/new", body=b"artifact"))
        replies.append(send("POST", "/v8/artifacts/events", json_body=[{}]))
    for failing in failures():
        with failing:
            replies.append(cloud.send("GET", "/v8/artifacts/absent"))
    assert {202, 400, 401, 403, 404, 429, 500, 503} <= {reply.status for reply in replies}
    for reply in replies:
        assert secrets.found_in(reply.body.decode() + repr(reply.headers)) == []
    written = capfd.readouterr()
    assert cloud.key.id in written.out + caplog.text
    assert hash_key(cloud.token) in caplog.text, "the log does not have the calls to AWS"
    assert secrets.found_in(caplog.text + written.out + written.err) == []
