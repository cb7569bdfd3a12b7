"""events/: a sample event for each function, as AWS would send it, for `sam local invoke` and the tests.

The requests are those of tests/catalogue.py.
"""

from __future__ import annotations

import json
import re
import uuid
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from larder.accounts.email_jobs import MailContext, RequestDescription, VerifyEmail, job_record
from larder.artifacts.jobs import JobKind, RemovalJob
from local.http_event import build_http_event
from local.schedules import scheduled_event
from tests.catalogue import NAMES, TURBO, path_parameters, valid
from tools.generate.functions import Function, functions

FOLDER = Path(__file__).resolve().parent.parent.parent / "events"

OWNER = "team_sample"

ACCOUNT = "123456789012"
HOST = "example.execute-api.us-east-1.amazonaws.com"
CLIENT_ADDRESS = "192.0.2.10"
NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)
SAMPLES = replace(NAMES, run_started_ms=round(NOW.timestamp() * 1000))

BROWSER = "Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/145.0"
CURL = "curl/8.14.1"
CLIENTS = {
    "accounts": "node",
    "api_keys": "node",
    "artifacts": TURBO,
    "pages": BROWSER,
    "teams": CURL,
    "usage": CURL,
}
"""The user agent of the requests to a folder of functions/."""

CHOSEN = {
    "invite_members": "POST /v2/teams/{idOrSlug}/members",
    "preflight": "OPTIONS /v8/artifacts/{hash}",
}
"""The operations of functions with several. Others take the first."""

_OBJECT_CREATED = {
    "version": "0",
    "id": "17793124-05d4-b198-2fde-7ededc63b103",
    "detail-type": "Object Created",
    "source": "aws.s3",
    "account": ACCOUNT,
    "time": "2026-11-21T09:00:00Z",
    "region": "us-east-1",
    "resources": ["arn:aws:s3:::larder-artifacts-bucket"],
    "detail": {
        "version": "0",
        "bucket": {"name": "larder-artifacts-bucket"},
        "object": {
            "key": f"artifacts/{OWNER}/{NAMES.hash}/019aa5b3c4d00123456789abcdef.{NAMES.key_id}",
            "size": 22,
            "etag": "b1946ac92492d2347c6235b4d2611184",
            "version-id": "IYV3p45BT0ac8hjHg1houSdS1a.Mro8e",
            "sequencer": "00617F08299329D189",
        },
        "request-id": "N4N7GDK58NMKJ12R",
        "requester": ACCOUNT,
        "source-ip-address": CLIENT_ADDRESS,
        "reason": "PutObject",
    },
}


def write() -> None:
    """Write every event, and delete those of functions that no longer exist."""
    wanted = texts()
    for path in FOLDER.iterdir():
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        (FOLDER / name).write_text(text)


def stale() -> list[str]:
    """The names of files that `write` would change, add or delete."""
    wanted = texts()
    found = {path.name: path.read_text() for path in FOLDER.iterdir()}
    return sorted(
        name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name)
    )


def texts() -> dict[str, str]:
    """Every file of events/, by name."""
    return {
        f"{function.module}.json": json.dumps(_event(function), indent=2, ensure_ascii=False) + "\n"
        for function in functions()
    }


def _event(function: Function) -> dict[str, Any]:
    if function.routes:
        return _request(function)
    if function.module in EVENTS:
        return EVENTS[function.module]
    name = function.logical_id
    return scheduled_event(f"larder-{name}{name}-EXAMPLE", NOW) | {
        "id": str(uuid.uuid5(uuid.NAMESPACE_URL, name)),
        "account": ACCOUNT,
        "resources": [f"arn:aws:events:us-east-1:{ACCOUNT}:rule/larder-{name}{name}-EXAMPLE"],
    }


def _request(function: Function) -> dict[str, Any]:
    route = function.routes[0]
    operation = CHOSEN.get(function.module, f"{route.method} {route.path}")
    request = valid(operation, SAMPLES, origin=f"https://{HOST}")
    body, headers = request.body, dict(request.headers)
    if body:
        headers.setdefault("content-type", "application/octet-stream")
    elif request.json is not None:
        body = json.dumps(request.json, separators=(",", ":")).encode()
        headers["content-type"] = "application/json"
    if request.by:
        headers["authorization"] = f"Bearer {NAMES.key if request.by == 'key' else NAMES.session}"
    if body:
        headers["content-length"] = str(len(body))
    team = f"slug={NAMES.team}" if request.for_team else ""
    path = operation.split()[1]
    places = path_parameters(NAMES)
    return _http_event(
        request.method,
        request.path,
        "&".join(part for part in (team, request.query) if part),
        headers | {"user-agent": CLIENTS[function.domain]},
        body,
        route_key=operation,
        places={name.rstrip("+"): places[name] for name in re.findall(r"\{([\w+]+)\}", path)},
    )


def _http_event(
    method: str,
    path: str,
    query: str,
    headers: dict[str, str],
    body: bytes = b"",
    *,
    route_key: str,
    places: dict[str, str],
) -> dict[str, Any]:
    forwarded = {
        "host": HOST,
        "x-forwarded-for": CLIENT_ADDRESS,
        "x-forwarded-port": "443",
        "x-forwarded-proto": "https",
    }
    event = build_http_event(
        method,
        path,
        query,
        sorted((headers | forwarded).items()),
        body,
        route_key=route_key,
        path_parameters=places,
        source_ip=CLIENT_ADDRESS,
        request_id="JKJaXmPLvHcESHA=",
        now=NOW,
        domain_name=HOST,
    )
    event["requestContext"] |= {"accountId": ACCOUNT, "apiId": "example"}
    return event


EVENTS: dict[str, dict[str, Any]] = {
    "answer_unknown": _http_event(
        "GET",
        f"/v8/artifact/{NAMES.hash}",
        "",
        {"accept": "*/*", "user-agent": TURBO},
        route_key="$default",
        places={},
    ),
    "commit_upload": _OBJECT_CREATED,
    "keep_warm": {
        "instances": 10,
        "functions": {
            "many": [f"larder-{name}" for name in ("fetch-artifact", "preflight", "put-artifact")],
            "one": [
                f"larder-{name}"
                for name in ("get-status", "query-artifacts", "record-events", "record-run")
            ],
        },
    },
    "remove_artifacts": asdict(RemovalJob(kind=JobKind.REMOVAL, owner=OWNER, target=NAMES.key_id)),
    "send_account_email": job_record(
        VerifyEmail(
            email="ada@acme.example",
            callback_url="/welcome",
            mail_context=MailContext(
                base_url="https://cache.example.com",
                request=RequestDescription(
                    method="POST",
                    path="/api/auth/send-verification-email",
                    ip_address="192.0.2.1",
                    user_agent="Mozilla/5.0",
                ),
            ),
        )
    ),
}
"""The events of functions that have neither a route nor the event of a schedule."""
