"""events/: an event for each function, as the cloud would send it. `sam local invoke` takes them, and the tests do.

A request needs an entry in `SAMPLES` only if it carries more than a session's token and, for a POST, an empty body.
"""

from __future__ import annotations

import base64
import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from larder.accounts.email_jobs import MailContext, RequestDescription, VerifyEmail, job_record
from larder.artifacts.jobs import JobKind, RemovalJob
from local.http_event import build_http_event
from local.schedules import scheduled_event
from tools.generate.functions import Function, functions

FOLDER = Path(__file__).resolve().parent.parent.parent / "events"

KEY = "larder_sample_key"
SESSION = "LarderSampleSession0000000000000"
KEY_ID = "LarderSampleKey00000000000000000"
OWNER = "team_sample"
HASH = "08e4547d5347b63f"

ACCOUNT = "123456789012"
HOST = "example.execute-api.us-east-1.amazonaws.com"
CLIENT_ADDRESS = "192.0.2.10"
NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)

TURBO = "turbo 2.11.11 1.98.0-nightly linux x86_64"
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
"""Who sends the requests of a folder of functions/."""

PLACES = {
    "hash": HASH,
    "idOrSlug": "acme",
    "token": "LarderSampleResetToken00",
    "proxy+": "sign-in/email",
}
"""What stands in the path for its parameters. Others are `sample`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What is special about the request of a sample event. `path` is for a function with several."""

    token: str | None = SESSION
    path: str | None = None
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: object = None


_PASSWORD = "correct horse battery staple"  # noqa: S105 - of nobody
_LOGIN = "redirect_uri=http%3A%2F%2F127.0.0.1%3A9789"
_STATE = "JlWTpaNIJSVbBSyMpDVuzWvdNaWoUjqg"
_FROM_CI = {"x-artifact-client-ci": "GITHUB_ACTIONS", "x-artifact-client-interactive": "0"}
_RUN = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"

SAMPLES: dict[str, Sample] = {
    "answer_cors_preflight": Sample(
        token=None,
        headers={
            "access-control-request-headers": "content-type",
            "access-control-request-method": "POST",
            "origin": "https://app.example.com",
        },
    ),
    "change_email": Sample(body={"newEmail": "ada@new.example", "callbackURL": "/changed"}),
    "change_password": Sample(
        body={
            "newPassword": "another correct horse",
            "currentPassword": _PASSWORD,
            "revokeOtherSessions": True,
        }
    ),
    "follow_reset_link": Sample(token=None, query="callbackURL=%2Freset"),
    "get_current_token": Sample(token=KEY),
    "get_ok": Sample(token=None),
    "get_user": Sample(token=KEY),
    "request_password_reset": Sample(
        token=None, body={"email": "ada@example.com", "redirectTo": "/reset"}
    ),
    "request_verification": Sample(
        token=None, body={"email": "ada@example.com", "callbackURL": "/verified"}
    ),
    "reset_password": Sample(
        token=None, body={"newPassword": "another correct horse", "token": PLACES["token"]}
    ),
    "revoke_current_token": Sample(token=KEY),
    "revoke_session": Sample(body={"token": "LarderSampleSessionOtherOne00000"}),
    "sign_in": Sample(token=None, body={"email": "ada@example.com", "password": _PASSWORD}),
    "sign_up": Sample(
        token=None, body={"name": "Ada", "email": "ada@example.com", "password": _PASSWORD}
    ),
    "update_user": Sample(body={"name": "Ada Lovelace"}),
    "verify_email": Sample(
        token=None, query="token=eyJhbGciOiJIUzI1NiJ9.e30.sample&callbackURL=%2Fverified"
    ),
    "verify_password": Sample(body={"password": _PASSWORD}),
    "create_api_key": Sample(
        body={"name": "ci", "expiresIn": 2592000, "permissions": {"artifacts": ["read"]}}
    ),
    "delete_api_key": Sample(body={"keyId": KEY_ID}),
    "get_api_key": Sample(query=f"id={KEY_ID}"),
    "update_api_key": Sample(body={"keyId": KEY_ID, "name": "deploy"}),
    "verify_api_key": Sample(token=None, body={"key": KEY, "permissions": {"artifacts": ["read"]}}),
    "artifact_exists": Sample(token=KEY, query="slug=acme"),
    "delete_artifact": Sample(query="slug=acme"),
    "delete_written_artifacts": Sample(query=f"slug=acme&writer={KEY_ID}"),
    "fetch_artifact": Sample(token=KEY, query="slug=acme"),
    "get_status": Sample(token=KEY, query="slug=acme"),
    "inspect_artifact": Sample(query="slug=acme"),
    "list_artifacts": Sample(query="slug=acme&limit=50"),
    "preflight": Sample(
        token=KEY,
        path="/v8/artifacts/{hash}",
        query="slug=acme",
        headers={
            "access-control-request-headers": "Authorization, Content-Type, User-Agent, x-artifact-duration, "
            "x-artifact-tag, x-artifact-sha, x-artifact-dirty-hash",
            "access-control-request-method": "PUT",
        },
    ),
    "put_artifact": Sample(
        token=KEY,
        query="slug=acme",
        headers={
            **_FROM_CI,
            "x-artifact-duration": "1234",
            "x-artifact-sha": "1f0bd0a4c8b0f0e5b6f0a4f0a6b7c8d9e0f1a2b3",
            "x-artifact-tag": "Tc0BmHvJYMIYJ62/zx87YqO0Flxk+5Ovip25NY825CQ=",
        },
        body=base64.b64decode("KLUv/SQNaQAAaGVsbG8sIGxhcmRlcg=="),  # zstandard of "hello, larder"
    ),
    "query_artifacts": Sample(
        token=KEY, query="slug=acme", body={"hashes": [HASH, "5347b63f08e4547d"]}
    ),
    "record_events": Sample(
        token=KEY,
        query="slug=acme",
        headers=_FROM_CI,
        body=[
            {"sessionId": _RUN, "source": "REMOTE", "event": "HIT", "hash": HASH, "duration": 1234},
            {"sessionId": _RUN, "source": "LOCAL", "event": "MISS", "hash": HASH},
        ],
    ),
    "set_caching_status": Sample(query="slug=acme", body={"status": "paused"}),
    "describe_login": Sample(query=_LOGIN),
    "exchange_login_code": Sample(
        token=None,
        query="token=LarderSampleLoginCode00000000000"
        "&tokenName=Turbo+CLI+on+laptop+via+SAML%2FOIDC+Single+Sign-On",
    ),
    "grant_login": Sample(
        headers={"origin": f"https://{HOST}", "sec-fetch-site": "same-origin"},
        body={"redirectUri": "http://127.0.0.1:9789", "state": _STATE, "name": "turbo on Linux"},
    ),
    "show_home": Sample(token=None),
    "show_invitation": Sample(token=None, query="token=LarderSampleInvitation0000000000"),
    "show_login": Sample(token=None, query=f"{_LOGIN}&state={_STATE}"),
    "show_login_success": Sample(token=None),
    "show_openapi": Sample(token=None),
    "show_password_reset": Sample(token=None, query=f"token={PLACES['token']}"),
    "show_verified": Sample(token=None),
    "start_sso_login": Sample(
        token=None,
        query=f"teamId=acme&mode=login&next=http%3A%2F%2F127.0.0.1%3A9789&state={_STATE}",
    ),
    "change_member": Sample(body={"role": "ADMIN"}),
    "create_team": Sample(body={"slug": "web-platform", "name": "Web platform"}),
    "get_team": Sample(token=KEY),
    "invite_members": Sample(
        path="/v2/teams/{idOrSlug}/members", body={"email": "bob@example.com", "role": "DEVELOPER"}
    ),
    "join_team": Sample(path="/v1/teams/join", body={"token": "A" * 40}),
    "list_teams": Sample(token=KEY, query="limit=100"),
    "update_team": Sample(body={"name": "Acme, Inc.", "slug": "acme-inc"}),
    "get_usage": Sample(token=KEY, query="slug=acme&from=2026-11-01&to=2026-11-21"),
}

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
            "key": f"artifacts/{OWNER}/{HASH}/019aa5b3c4d00123456789abcdef",
            "size": 22,
            "etag": "b1946ac92492d2347c6235b4d2611184",
            "sequencer": "00617F08299329D189",
        },
        "request-id": "N4N7GDK58NMKJ12R",
        "requester": ACCOUNT,
        "source-ip-address": CLIENT_ADDRESS,
        "reason": "PutObject",
    },
}


def write() -> None:
    """Write every event, and delete those of functions that are gone."""
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
        f"{one.module}.json": json.dumps(_event(one), indent=2, ensure_ascii=False) + "\n"
        for one in functions()
    }


def _event(function: Function) -> dict[str, Any]:
    if function.routes:
        return _request(function, SAMPLES.get(function.module, Sample()))
    if function.module in EVENTS:
        return EVENTS[function.module]
    name = function.logical_id
    return scheduled_event(f"larder-{name}{name}-EXAMPLE", NOW) | {
        "id": str(uuid.uuid5(uuid.NAMESPACE_URL, name)),
        "account": ACCOUNT,
        "resources": [f"arn:aws:events:us-east-1:{ACCOUNT}:rule/larder-{name}{name}-EXAMPLE"],
    }


def _request(function: Function, sample: Sample) -> dict[str, Any]:
    (route, *_) = [one for one in function.routes if sample.path in (None, one.path)]
    places = {name: PLACES.get(name, "sample") for name in re.findall(r"\{([\w+]+)\}", route.path)}
    path = re.sub(r"\{([\w+]+)\}", lambda match: places[match[1]], route.path)
    body, headers = b"", dict(sample.headers)
    if isinstance(sample.body, bytes):
        body, headers["content-type"] = sample.body, "application/octet-stream"
    elif sample.body is not None or route.method == "POST":
        body = json.dumps(sample.body or {}, separators=(",", ":")).encode()
        headers["content-type"] = "application/json"
    if sample.token:
        headers["authorization"] = f"Bearer {sample.token}"
    if body:
        headers["content-length"] = str(len(body))
    return _http_event(
        route.method,
        path,
        sample.query,
        headers | {"user-agent": CLIENTS[function.domain]},
        body,
        route_key=f"{route.method} {route.path}",
        places={name.rstrip("+"): value for name, value in places.items()},
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
        f"/v8/artifact/{HASH}",
        "",
        {"accept": "*/*", "user-agent": TURBO},
        route_key="$default",
        places={},
    ),
    "commit_upload": _OBJECT_CREATED,
    "remove_artifacts": asdict(RemovalJob(kind=JobKind.WRITTEN, owner=OWNER, writer=KEY_ID)),
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
"""The events of functions that neither a route nor a schedule starts."""
