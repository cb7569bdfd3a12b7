"""The events of events/, filled in for users who exist. Runs in a worker, through the layer's own services.

The samples name a key, a team, a session, an address and so on that do not exist. This replaces them with real ones,
so that functions do the same work as for real requests.
"""

from __future__ import annotations

import json
import re
import secrets
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from itertools import count, cycle, islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from larder.accounts import repository as accounts
from larder.accounts.link_tokens import issue_verification_token
from larder.accounts.models import Credential, User
from larder.accounts.password_resets import issue_reset_token
from larder.accounts.passwords import hash_password
from larder.accounts.service import new_account
from larder.accounts.sessions import start_session
from larder.actor import Actor
from larder.api_keys.keys import create_key
from larder.api_keys.models import ApiKey
from larder.api_keys.properties import NewKey
from larder.artifacts import uploads
from larder.artifacts.models import UNPROTECTED, ArtifactHash, ArtifactMetadata, CacheRequest
from larder.teams.models import Team
from larder.teams.teams import create_team

EVENTS = Path(__file__).resolve().parents[3] / "events"
PASSWORD = "correct horse battery staple"  # noqa: S105 - only for the samples
BODY = b"the artifact of the samples"
HASH = ArtifactHash("08e4547d5347b63f")

_USED_UP = frozenset(
    {
        "change_password",
        "commit_upload",
        "delete_api_key",
        "reset_password",
        "revoke_current_token",
        "revoke_session",
        "revoke_sessions",
        "sign_out",
        "sign_up",
    }
)
"""The functions that end or use up what their event names. They need a new event for each call."""

_addresses = count()


@dataclass(frozen=True, slots=True)
class SampleUser:
    """A verified user with a team and a key for it."""

    user: User
    team: Team
    key: ApiKey
    token: str


def handler(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Takes `{"module": "put_artifact", "calls": 3}`. Returns that many `events`, and the email of an `operator`."""
    name = event["module"]
    calls = event["calls"]
    people = [
        make_sample_user(has_artifact=name != "put_artifact")
        for _ in range(calls if name in _USED_UP else 1)
    ]
    texts = [_filled(name, sample_user) for sample_user in people]
    events = [
        _event(name, text, sample_user)
        for text, sample_user in islice(cycle(zip(texts, people, strict=True)), calls)
    ]
    return {"events": events, "operator": people[0].user.email}


def make_sample_user(*, has_artifact: bool) -> SampleUser:
    now, mark = datetime.now(tz=UTC), secrets.token_hex(6)
    account = new_account(f"ada-{mark}@acme.example", "Ada", email_verified=True, now=now)
    accounts.add(replace(account, credential=_credential()))
    team = create_team("Acme", f"acme-{mark}", owner_user_id=account.user.id, now=now)
    new = NewKey(user_id=account.user.id, team_id=team.id, name="ci")
    key, token = create_key(new, now=now)
    if has_artifact:
        metadata = ArtifactMetadata(duration_ms=1234)
        uploads.store(
            CacheRequest(
                owner=team.id,
                hash=HASH,
                writer=Actor(key.id, account.user.id),
                view=UNPROTECTED,
                now=now,
            ),
            BODY,
            metadata,
        )
    return SampleUser(account.user, team, key, token)


def replacements(sample_user: SampleUser, *, is_new: bool) -> Iterator[tuple[str, str]]:
    """The values in the samples, and their replacements."""
    now, user = datetime.now(tz=UTC), sample_user.user
    email = f"new-{user.email}" if is_new else user.email
    yield "LarderSampleKey00000000000000000", sample_user.key.id
    yield "larder_sample_key", sample_user.token
    # The start of the reported run, which may not be old.
    yield "1795251600000", str(round(now.timestamp() * 1000))
    yield "team_sample", sample_user.team.id
    yield "LarderSampleSessionOtherOne00000", start_session(user, now=now)[1]
    yield "LarderSampleSession0000000000000", start_session(user, now=now)[1]
    yield "LarderSampleResetToken00", issue_reset_token(user, now=now)
    yield "eyJhbGciOiJIUzI1NiJ9.e30.sample", issue_verification_token(user, now=now)
    yield "ada@new.example", f"new-{user.email}"
    yield "ada@example.com", email
    yield "ada@acme.example", email


def _filled(name: str, sample_user: SampleUser) -> str:
    text = (EVENTS / f"{name}.json").read_text()
    for sample, real in replacements(sample_user, is_new=name == "sign_up"):
        text = text.replace(sample, real)
    # The slug is in paths and queries. Before a dot it is part of an email address.
    return re.sub(r"\bacme\b(?![.-])", sample_user.team.slug, text)


def _event(name: str, text: str, sample_user: SampleUser) -> dict[str, Any]:
    event: dict[str, Any] = json.loads(text)
    if name == "commit_upload":
        event["detail"]["object"].update(_upload(sample_user))
    if "requestContext" in event:
        _readdress(event)
    return event


def _upload(sample_user: SampleUser) -> dict[str, Any]:
    """A direct upload whose object exists; its key and size."""
    now = datetime.now(tz=UTC)
    writer = Actor(sample_user.key.id, sample_user.user.id)
    url = (
        uploads.offer_upload(
            CacheRequest(
                owner=sample_user.team.id, hash=HASH, writer=writer, view=UNPROTECTED, now=now
            )
        )
        or ""
    )
    put = urllib.request.Request(url, data=BODY, method="PUT")  # noqa: S310 - this machine's S3
    put.add_header("content-type", "application/octet-stream")
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(put, timeout=10).close()
    path = urlsplit(url).path
    return {"key": path[path.index("/artifacts/") + 1 :], "size": len(BODY)}


def _readdress(event: dict[str, Any]) -> None:
    """Set a new address for each call, so that no limit by address applies, and the body's real length."""
    number = next(_addresses)
    event["requestContext"]["http"]["sourceIp"] = f"198.18.{number // 256 % 256}.{number % 256}"
    if "content-length" in event["headers"] and not event["isBase64Encoded"]:
        event["headers"]["content-length"] = str(len(event["body"].encode()))


@cache
def _credential() -> Credential:
    now = datetime.now(tz=UTC)
    return Credential(password_hash=hash_password(PASSWORD), created_at=now, updated_at=now)
