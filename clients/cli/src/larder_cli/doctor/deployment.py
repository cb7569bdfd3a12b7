"""The checks that ask the deployment. It gets the token only in `Authorization`, and only after it has said that it is
Larder. An address that only the repository names gets none.
"""

import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from email.utils import parsedate_to_datetime
from shlex import quote as quote_argument
from typing import Any
from urllib.parse import quote, unquote, urlencode, urlsplit

from larder_proxy.settings import Settings

from larder import clock
from larder.artifacts.models import Upload, parse_object_key
from larder.teams.models import is_team_id
from larder_cli.doctor.findings import PREFLIGHT_LINE, Finding, Level
from larder_cli.doctor.here import (
    DIRECT_UPLOADS_FROM,
    is_sendable,
    is_sidecar,
    is_usable,
    old_turbo,
)
from larder_cli.doctor.repository import Artifacts, Version
from larder_cli.http import Answer, Unreachable, about_silence, exchange, is_of_edge

TIMEOUT_S = 10.0
CLOCKS_AGREE = timedelta(minutes=5)
EXPIRES_SOON = timedelta(days=7)

_FAILURES = 3
"""After which `larder run` says that Larder does not answer."""

_BY_CODE = {
    "unauthorized": "token-refused",
    "not_a_team_member": "other-team",
    "invalid_team": "invalid-team",
    "teams_differ": "teams-differ",
    "account_soft_blocked": "blocked",
    "payment_missing": "blocked",
    "remote_caching_disabled": "team-off",
    "remote_caching_paused": "team-off",
    "remote_caching_over_limit": "quota-full",
    "email_not_proven": "read-only",
    "read_only": "read-only",
    "missing_permission": "read-only",
    "missing_role": "read-only",
    "rate_limited": "rate-limited",
}
_BY_STATUS = {401: "token-refused", 402: "blocked", 429: "rate-limited"}
_STATUS = {"disabled": "team-off", "paused": "team-off", "over_limit": "quota-full"}
_PASTE = {"token-refused": "TURBO_TOKEN=..."}
_OF_TEAM = ("other-team", "invalid-team", "teams-differ")


@dataclass(kw_only=True)
class Deployment:
    """What the deployment says. A field is None if doctor could not ask for it."""

    address: str
    is_larder: bool = False
    status: str | None = None
    uploads: str | None = None
    """How large artifacts get there: `edge`, `s3`, or `function` if only by a function."""
    scope: str | None = None
    expires_at_ms: int | None = None
    findings: list[Finding] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Asker:
    address: str
    token: str
    team: dict[str, str]

    def ask(
        self, method: str, path: str, *, agent: str = "larder-doctor", **headers: str
    ) -> Answer:
        """Ask as turbo does, with the token and the team."""
        query = f"?{urlencode(self.team)}" if self.team else ""
        sent = {"User-Agent": agent, "Authorization": f"Bearer {self.token}", **headers}
        return exchange(method, f"{self.address}{path}{query}", headers=sent, timeout_s=TIMEOUT_S)


def ask_deployment(
    client: Settings, version: Version | None, artifacts: Artifacts
) -> Deployment | None:
    """None if there is no address to ask."""
    address = client.api
    if address is None or not is_usable(address):
        return None
    deployment = Deployment(address=address)
    token = client.text("token")
    try:
        if is_sidecar(client):
            deployment.findings += _sidecar(_Asker(address, token or "", client.team), deployment)
            return deployment
        deployment.findings += _identify(deployment)
        if not deployment.is_larder or token is None or not is_sendable(token):
            return deployment
        if not client.gives_token:
            deployment.findings.append(_not_sent(client, address))
        elif client.team:
            asker = _Asker(address, token, client.team)
            deployment.findings += _access(asker, deployment, client)
            deployment.findings += _upload(asker, deployment, client)
            if deployment.uploads in ("edge", "s3"):
                deployment.findings += _old_client(asker, client, version, artifacts)
    except Unreachable as error:
        deployment.findings.append(
            _of(
                deployment,
                "unreachable",
                f"No response: {error}. {_sentence(about_silence(error))}.",
            )
        )
    return deployment


def _not_sent(client: Settings, address: str) -> Finding:
    return Finding(
        id="token-not-sent",
        where=client.value("apiUrl").where,
        found=f"The token of {client.value('token').where} was not sent to {address}.",
        paste=f"larder accept {quote_argument(address)}",
    )


def _identify(deployment: Deployment) -> Iterator[Finding]:
    """Ask without the token."""
    answer = exchange(
        "GET",
        f"{deployment.address}/api/auth/ok",
        headers={"User-Agent": "larder-doctor"},
        timeout_s=TIMEOUT_S,
    )
    deployment.is_larder = answer.status == 200 and answer.json == {"ok": True}
    if not deployment.is_larder:
        url = urlsplit(deployment.address)
        found = f"{url.netloc}{url.path} answers {answer.status} to /api/auth/ok."
        paste = f"TURBO_API={url.scheme}://{url.netloc}" if url.path else ""
        yield _of(deployment, "not-larder", found, paste)
    elif (off_by := _clock_difference(answer)) and abs(off_by) > CLOCKS_AGREE:
        minutes = round(abs(off_by).total_seconds() / 60)
        ahead = "ahead of" if off_by > timedelta() else "behind"
        yield Finding(
            id="wrong-clock",
            where="the clock",
            found=f"This computer's clock is {minutes} minutes {ahead} the deployment's.",
        )


def _sidecar(asker: _Asker, deployment: Deployment) -> Iterator[Finding]:
    """`larder run` answers turbo whatever happens, but remembers what it has said about it."""
    for _ in range(_FAILURES):
        asker.ask("GET", f"/v8/artifacts/{secrets.token_hex(8)}")
    answer = asker.ask("GET", "/larder/status")
    deployment.is_larder = isinstance(answer.json, dict)
    if deployment.is_larder:
        deployment.uploads = "sidecar"
        for line in answer.json.get("said") or filter(None, [answer.json.get("off")]):
            yield _of(deployment, "sidecar", f"{line}.")
    else:
        yield _of(deployment, "sidecar", f"It answers {answer.status} to /larder/status.")


def _clock_difference(answer: Answer) -> timedelta | None:
    try:
        return clock.now() - parsedate_to_datetime(answer.headers.get("date", ""))
    except (ValueError, TypeError):
        return None


def _access(asker: _Asker, deployment: Deployment, client: Settings) -> Iterator[Finding]:
    answer = asker.ask("GET", "/v8/artifacts/status")
    if answer.status != 200:
        yield _refusal(deployment, client, answer)
        return
    status = answer.json.get("status") if isinstance(answer.json, dict) else None
    deployment.status = str(status)
    if (id := _STATUS.get(deployment.status)) is not None:
        found = f"The team's caching is {deployment.status}."
        yield _of(deployment, id, found)
    # A team's own key gets 401 here, and so does the token of a CI job, which lives for an hour anyway.
    scopes = _token_scopes(asker.ask("GET", "/v5/user/tokens/current"))
    where = client.value("token").where
    if scopes and client.environment.get("CI"):
        paste = f"larder keys create --team {quote_argument(client.text('teamSlug') or 'my-team')} --owned-by-team"
        yield Finding(
            id="personal-key", where=where, found="CI uses the key of a user.", paste=paste
        )
    expires_at = scopes[0].get("expiresAt") if scopes else None
    if isinstance(expires_at, int):
        deployment.expires_at_ms = expires_at
        left = clock.from_ms(expires_at) - clock.now()
        if left < EXPIRES_SOON:
            found = f"The token expires at {clock.from_ms(expires_at):%Y-%m-%d %H:%M} UTC."
            yield Finding(id="token-expires", where=where, found=found)


def _token_scopes(answer: Answer) -> list[dict[str, Any]]:
    try:
        return list(answer.json["token"]["scopes"])
    except (KeyError, TypeError):
        return []


def _upload(asker: _Asker, deployment: Deployment, client: Settings) -> Iterator[Finding]:
    """Announce an upload that does not follow. The sweep deletes its entry."""
    if deployment.status not in ("enabled", "over_limit"):
        return
    answer = _announce(asker, "larder-doctor")
    if answer.status in (402, 403, 429) or answer.status >= 500:
        refusal = _refusal(deployment, client, answer)
        if refusal.id != "quota-full":
            yield refusal
        return
    location = answer.headers.get("location")
    if location is None:
        deployment.uploads = "function"
        if not client.is_on("signature"):
            paste = '"remoteCache": { "signature": true }'
            yield _of(deployment, "unsigned-refused", "OPTIONS has no Location.", paste)
        return
    deployment.uploads = "edge" if is_of_edge(location) else "s3"
    yield from _destination(deployment, location)
    if deployment.uploads == "s3" and client.is_on("signature") and client.is_on("preflight"):
        where = client.value("preflight").where
        paste = PREFLIGHT_LINE.replace("true", "false")
        found = "signature and preflight are on."
        yield Finding(id="signature-with-preflight", where=where, found=found, paste=paste)


def _announce(asker: _Asker, agent: str) -> Answer:
    headers = {"Access-Control-Request-Method": "PUT"}
    path = f"/v8/artifacts/{quote(secrets.token_hex(8))}"
    return asker.ask("OPTIONS", path, agent=agent, **headers)


def _destination(deployment: Deployment, location: str) -> Iterator[Finding]:
    """The address has the key of the object, which says whose cache the upload goes to."""
    upload = _upload_of(location)
    if upload is None:
        return
    deployment.scope = upload.scope_name
    if not is_team_id(upload.owner):
        yield _of(deployment, "own-cache", "The token is not for the team that turbo names.")
    elif upload.scope is not None:
        yield _of(deployment, "own-scope", "Uploads of this token go to a scope of their own.")


def _upload_of(location: str) -> Upload | None:
    # The name of the bucket can be before it in the path.
    match = re.search(r"/(artifacts/.*)", unquote(urlsplit(location).path))
    return parse_object_key(match[1]) if match else None


def _old_client(
    asker: _Asker, client: Settings, version: Version | None, artifacts: Artifacts
) -> Iterator[Finding]:
    if version is None or version.numbers >= DIRECT_UPLOADS_FROM:
        return
    answer = _announce(asker, f"turbo {version.text}")
    if "location" not in answer.headers:
        yield from old_turbo(client, version, artifacts)


def _refusal(deployment: Deployment, client: Settings, answer: Answer) -> Finding:
    id = _BY_CODE.get(answer.code or "") or _BY_STATUS.get(answer.status, "unexpected")
    message = answer.json.get("message") if isinstance(answer.json, dict) else None
    message = str(message or "").replace(str(client.text("token")), "...")
    found = f"{answer.status} {answer.code or ''}".strip() + (f": {message}" if message else "")
    where = client.value("token").where if id in ("token-refused", "read-only") else None
    paste = _PASTE.get(id, "")
    if id in _OF_TEAM:
        where = client.value("teamId" if "teamId" in client.team else "teamSlug").where
        paste = _team_paste(client, where)
    # Many are made to only read. No one leaves an address unconfirmed on purpose.
    is_meant = id == "read-only" and answer.code != "email_not_proven"
    worst = Level.WARNING if is_meant else Level.PROBLEM
    where = where or deployment.address
    return Finding(id=id, where=where, found=found, paste=paste, worst=worst)


def _team_paste(client: Settings, where: str) -> str:
    """What corrects the team. The id goes before the slug, so a slug alone would not."""
    if "teamId" not in client.team:
        return "TURBO_TEAM=my-team"
    return f"unset {where}" if where in client.environment else "turbo unlink"


def _of(deployment: Deployment, id: str, found: str, paste: str = "") -> Finding:
    return Finding(id=id, where=deployment.address, found=found, paste=paste)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
