"""The token that the sidecar sends: a key, that of a CI job, or that of `turbo login`. Build tools never see it."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Mapping

from larder_proxy.address import Address, encoded
from larder_proxy.spool import Body

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from larder_proxy.connections import Pool, Reply
    from larder_proxy.settings import Settings

SECRETS = ("LARDER_TOKEN", "LARDER_ID_TOKEN")
"""Variables that the build does not get."""

RENEWED_AT = 0.8
"""The part of a token's lifetime after which the next one is asked for."""

_TOKEN = r"[A-Za-z0-9._~+/=-]{8,4096}"  # noqa: S105  # a pattern
_TRIES = 3
_MOST_JSON = 100_000


class NoCredential(Exception):
    """There is no token. The message says why, and what to do."""


class Target:
    """The deployment and the team. `url` has no slash at its end. Both names of the team can be empty.

    `is_sidecar` is whether it is the sidecar of a build around this one, which takes every size.
    """

    def __init__(
        self, url: str, team: str = "", team_id: str = "", *, is_sidecar: bool = False
    ) -> None:
        self.url, self.team, self.team_id, self.is_sidecar = url, team, team_id, is_sidecar
        named = {"teamId": team_id, "slug": team}
        self.query = "&".join(f"{name}={encoded(value)}" for name, value in named.items() if value)


class Token:
    """`ends_at` is the time (time.monotonic) of its end, None if the sidecar does not renew it."""

    def __init__(self, text: str, lives_from: float, ends_at: float | None = None) -> None:
        self.text, self.lives_from, self.ends_at = text, lives_from, ends_at

    @property
    def is_due(self) -> bool:
        if self.ends_at is None:
            return False
        return time.monotonic() > self.lives_from + (self.ends_at - self.lives_from) * RENEWED_AT


def read_target(settings: Settings) -> Target:
    """The address and the team. Raises NoCredential without an address that may have the token."""
    url = settings.api or ""
    if not _is_address(url):
        raise NoCredential(
            "TURBO_API must be the address of Larder, such as https://cache.example.com"
        )
    if not settings.gives_token:
        import shlex

        raise NoCredential(
            f"only {settings.value('apiUrl').where} names {url}. If it is your cache: larder accept {shlex.quote(url)}"
        )
    is_sidecar = url == settings.environment.get("LARDER_PROXY")
    return Target(
        url, settings.team.get("slug", ""), settings.team.get("teamId", ""), is_sidecar=is_sidecar
    )


class Credentials:
    """Finds the token, renews that of a job, and revokes it at the end."""

    def __init__(
        self,
        target: Target,
        environment: Mapping[str, str],
        pool: Pool,
        *,
        stored: str = "",
        id_token_command: str | None = None,
    ) -> None:
        """`stored` is the token of `turbo login`, or of the repository."""
        self._target, self._environment, self._pool = target, environment, pool
        self._stored, self._command = stored, id_token_command
        self._lock = threading.Lock()
        self._token: Token | None = None
        self._refusal: NoCredential | None = None
        self._exchanged = False

    def token(self) -> str:
        """The token of now. Raises NoCredential."""
        with self._lock:
            # Those that waited for a first token meanwhile do not ask again.
            if self._refusal is not None:
                raise self._refusal
            if self._token is None:
                try:
                    self._token = self._first()
                except NoCredential as refusal:
                    self._refusal = refusal
                    raise
            elif self._token.is_due:
                try:
                    self._token = self._exchange()
                except NoCredential:
                    # The old one may work for a while. A request later in the rest of its life tries again.
                    if time.monotonic() > (self._token.ends_at or 0):
                        raise
                    self._token.lives_from = time.monotonic()
            return self._token.text

    def revoke(self) -> None:
        """End the token of a job. A key stays."""
        with self._lock:
            token, self._token = self._token, None
        if token is None or not self._exchanged:
            return
        try:
            until = time.monotonic() + self._pool.limits.connect
            self._post("/login/oauth/token/revoke", {"token": token.text}, until).close()
        except (OSError, ValueError):
            # It ends by itself.
            return

    def _first(self) -> Token:
        named = self._environment.get("LARDER_TOKEN") or self._environment.get("TURBO_TOKEN")
        if named:
            return _checked(named)
        if self._job_token() is not None:
            return self._exchange()
        if self._stored:
            return _checked(self._stored)
        raise NoCredential(
            "there is no key in TURBO_TOKEN, no id token of a CI job, and no `turbo login`"
        )

    def _job_token(self) -> Callable[[float], str] | None:
        """How to get the id token of the job. None outside of one."""
        if self._command:
            return self._by_command
        if self._environment.get("ACTIONS_ID_TOKEN_REQUEST_URL"):
            return self._from_github
        if self._environment.get("LARDER_ID_TOKEN"):
            return lambda _: self._environment["LARDER_ID_TOKEN"]
        return None

    def _by_command(self, until: float) -> str:
        import shlex
        import subprocess

        try:
            done = subprocess.run(
                shlex.split(self._command or ""),
                stdout=subprocess.PIPE,
                timeout=until - time.monotonic(),
                check=False,
                env=dict(self._environment),
            )
        except subprocess.SubprocessError as error:
            raise OSError(str(error)) from error
        if done.returncode != 0:
            raise NoCredential(f"the command for the id token ended with {done.returncode}")
        return done.stdout.decode(errors="replace").strip()

    def _from_github(self, until: float) -> str:
        url = self._environment["ACTIONS_ID_TOKEN_REQUEST_URL"]
        joined = "&" if "?" in url else "?"
        secret = self._environment.get("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "")
        headers = {"Authorization": f"bearer {secret}"}
        audience = encoded(self._target.url)
        asked = f"{url}{joined}audience={audience}"
        reply = self._pool.request("GET", asked, headers, until=until)
        return str(_object(reply.read(_MOST_JSON)).get("value") or "")

    def _exchange(self) -> Token:
        """A new token for a new id token, because GitHub's can be used once."""
        get = self._job_token()
        reason = "there is no id token"
        until = time.monotonic() + self._pool.limits.answer
        for attempt in range(_TRIES):
            if time.monotonic() + attempt > until:
                break
            time.sleep(attempt)
            try:
                id_token = get(until) if get is not None else ""
                if not id_token:
                    continue
                asked = time.monotonic()
                reply = self._post("/login/oauth/token", self._exchange_form(id_token), until)
                answer = _object(reply.read(_MOST_JSON))
            except (OSError, ValueError) as error:
                reason = str(error)
                continue
            token, lasts = answer.get("access_token"), answer.get("expires_in")
            if isinstance(token, str) and re.fullmatch(_TOKEN, token) and isinstance(lasts, int):
                self._exchanged = True
                return Token(token, asked, asked + lasts)
            reason = str(answer.get("error_description") or answer.get("error") or reply.status)
        raise NoCredential(f"the id token of the job was refused: {reason}")

    def _exchange_form(self, id_token: str) -> dict[str, str]:
        return {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
            "subject_token": id_token,
            "team_id": self._target.team_id,
            "team_id_or_slug": self._target.team,
            "policy_id": self._environment.get("LARDER_RULE", ""),
        }

    def _post(self, path: str, form: Mapping[str, str], until: float) -> Reply:
        body = "&".join(f"{name}={encoded(value)}" for name, value in form.items()).encode()
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        url = f"{self._target.url}{path}"
        return self._pool.request("POST", url, headers, Body(body), until=until)


def _is_address(url: str) -> bool:
    try:
        return Address(url).scheme in ("http", "https")
    except ValueError:
        return False


def _checked(text: str) -> Token:
    if not re.fullmatch(_TOKEN, text):
        raise NoCredential("the token has characters that no token has")
    return Token(text, time.monotonic())


def _object(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
