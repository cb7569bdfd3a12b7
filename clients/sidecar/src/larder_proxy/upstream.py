"""The requests to Larder and its storage. Whatever goes wrong there is an answer here, never an exception."""

from __future__ import annotations

import json
import math
import socket
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress

from larder_proxy import __version__
from larder_proxy.address import encoded
from larder_proxy.connections import Pool, Reply
from larder_proxy.credentials import Credentials, NoCredential, Target
from larder_proxy.messages import BEGINS_GZIP, Malformed
from larder_proxy.places import MOST, Places
from larder_proxy.spool import Body
from larder_proxy.transfers import Answer, Download

INLINE = 4_500_000
"""The most bytes of an upload through a function, which keeps a signature. In base64, 6 MB are the limit."""

_TRIES = 2
_RESUMES = 3
_AGAIN = {429, 500, 502, 503, 504}
_REFUSED = {429, 503}
_REFUSED_TRIES, _REFUSED_UPLOAD_TRIES = 5, 7
"""Of requests for which no function was free: about 4 seconds. No task waits for an upload: about 20."""
_FAILURES = 3
_PAUSE_SECONDS = 30
_MOST_PAUSE_SECONDS = 480
_RECENT_SECONDS = 60
_REFUSED_SECONDS = 60
"""After which a refused key is tried again."""
_READ_ONLY = {"read_only", "missing_permission"}
_MOST_WAIT_SECONDS = 2.0
_MOST_JSON = 20_000_000
_BYTES = "octet-stream"
_ELSEWHERE = "TURBO_API is not the address of Larder, or a proxy answers in its place"
_DESCRIBING = "x-artifact-"
"""The headers that turbo stores with an artifact and reads again."""

_CANNOT_STORE, _NO_ANSWER = "the token cannot store", "Larder does not answer"

USER_AGENT = f"larder-proxy/{__version__}"


class Upstream:
    """The deployment, for one team and token. It is not asked while it keeps failing."""

    def __init__(
        self,
        target: Target,
        credentials: Credentials,
        pool: Pool,
        *,
        say: Callable[[str], None],
        ci: str = "",
        most: int = MOST,
    ) -> None:
        self._target, self._credentials, self._pool, self._say = target, credentials, pool, say
        self._headers = {"User-Agent": USER_AGENT}
        if ci:
            self._headers["x-artifact-client-ci"] = ci
        self.places = Places(most)
        self._lock = threading.Lock()
        self._failures = 0
        self._answered_at = 0.0
        self._pause_seconds = _PAUSE_SECONDS
        self._paused_until = 0.0
        self._off_reason, self._off_until = "", 0.0
        self._is_read_only = False
        self._said: dict[str, tuple[str, float]] = {}

    @property
    def refusal(self) -> str:
        """Why nothing is stored, `""` if it is."""
        return self.off or (_CANNOT_STORE if self._is_read_only else "")

    def connect(self) -> None:
        """Open a connection for a request that is about to come."""
        with suppress(OSError, ValueError):
            if self._may_ask():
                self._pool.connect(self._target.url)

    def size(self, hash: str, query: str = "") -> int | None:
        """The size of an artifact in bytes. None if it is not there, or nobody answers."""
        if not self._may_ask():
            return None
        with self.places.one():
            reply = self._ask("HEAD", self._artifact(hash, query), until=self._until())
        if reply is None:
            return None
        if reply.status != 200:
            self._give_up(reply, "a lookup")
            return None
        reply.close()
        return reply.length

    def find(self, hash: str, query: str = "", *, is_urgent: bool = True) -> Download | None:
        """The artifact, or None: it is not there, or could not be read. `query` names another team."""
        if not self._may_ask():
            return None
        url, headers = None, {}
        with self.places.one(is_urgent=is_urgent):
            until = self._until()
            reply = self._ask("GET", self._artifact(hash, query), until=until)
            if reply is None:
                return None
            if reply.status in (302, 307):
                url, headers = reply.header("location"), reply.headers(_DESCRIBING)
                _drop(reply)
                # Storage checks the signature in the address, and refuses a second credential.
                reply = self._send("GET", url, {"User-Agent": USER_AGENT}, until=until)
                if reply is None:
                    return None
        if reply.status != 200 or reply.length is None:
            self._give_up(reply, "a lookup")
            return None
        if url is None and not reply.header("content-type").endswith(_BYTES):
            # A page of another site, or of a proxy, would break the tool. Storage has the type that an uploader named.
            reply.close()
            self.turn_off(_ELSEWHERE)
            return None
        if reply.header("content-type").startswith("text/html"):
            # Of a network that sends every request to its login page.
            reply.close()
            self.say_once("page", "a download is a page of another site; its task runs again")
            return None
        headers.update(reply.headers(_DESCRIBING))
        return Download(reply, reply.length, self._blocks(reply, url), headers)

    def store(self, hash: str, body: Body, described: Mapping[str, str], query: str = "") -> str:
        """Upload an artifact. `described` has the headers for its duration, its signature and its commit.

        Returns why it is not stored, `""` if it is. Raises OSError if the body cannot be read.
        """
        if self.refusal:
            return self.refusal
        url = self._artifact(hash, query)
        headers = {"Content-Type": "application/octet-stream", **described}
        with self.places.one(is_urgent=False):
            if body.size <= INLINE or self._target.is_sidecar:
                reply = self._ask("PUT", url, headers, body)
            else:
                reply = self._store_directly(url, headers, body)
        if reply is None:
            return self.off or _NO_ANSWER
        if 200 <= reply.status < 300:
            _drop(reply)
            return ""
        return self._give_up(reply, "an upload")

    def _store_directly(self, at: str, headers: Mapping[str, str], body: Body) -> Reply | None:
        """Upload to storage, at the address that Larder gives for it. The edge keeps the headers, and S3 does not."""
        asked = {
            **headers,
            "Access-Control-Request-Method": "PUT",
            "Access-Control-Request-Headers": "Authorization, Content-Type, User-Agent",
        }
        offer = self._ask("OPTIONS", at, asked)
        if offer is None or offer.status >= 300:
            return offer
        url = offer.header("location")
        _drop(offer)
        if not url:
            self.say_once(
                "direct", f"an upload of {body.size} bytes needs direct uploads, which are off"
            )
            return None
        return self._send("PUT", url, headers, body)

    def pass_on(
        self,
        method: str,
        path: str,
        content: bytes | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        query: str = "",
        is_urgent: bool = True,
    ) -> Answer | None:
        """The answer to a request with JSON, which can be compressed, such as a query. None without one."""
        if not self._may_ask():
            return None
        body = None
        sent = dict(headers or {})
        if content is not None:
            body = Body(content)
            # A gateway reads JSON as text, which breaks compressed bytes.
            is_packed = content.startswith(BEGINS_GZIP)
            sent["Content-Type"] = f"application/{_BYTES if is_packed else 'json'}"
        url = f"{self._target.url}{path}?{query or self._target.query}"
        with self.places.one(is_urgent=is_urgent):
            reply = self._ask(method, url, sent, body, until=self._until())
            if reply is None:
                return None
            try:
                return Answer(reply.status, reply.read(_MOST_JSON))
            except socket.timeout:
                self._timed_out()
                return None
            except (OSError, ValueError):
                return None

    def _until(self) -> float:
        """The time by which the answer to a request of now must begin."""
        return time.monotonic() + self._pool.limits.answer

    def _artifact(self, hash: str, query: str) -> str:
        team = query or self._target.query
        return f"{self._target.url}/v8/artifacts/{encoded(hash)}?{team}"

    def _ask(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        body: Body | None = None,
        *,
        until: float = math.inf,
    ) -> Reply | None:
        """A request with the token."""
        # While this one waited for a place, others may have found out that nobody answers.
        if not self._may_ask():
            return None
        try:
            token = self._credentials.token()
        except NoCredential as error:
            self.turn_off(str(error))
            return None
        own = {**self._headers, **(headers or {}), "Authorization": f"Bearer {token}"}
        return self._send(method, url, own, body, until=until)

    def _send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: Body | None = None,
        *,
        until: float = math.inf,
    ) -> Reply | None:
        """The answer to a request that is repeated once, if it begins by the time (time.monotonic) `until`.

        None without one.
        """
        reply, reason, attempt, tries = None, "", 0, _TRIES
        while True:
            try:
                sent_at = time.monotonic()
                reply = self._pool.request(method, url, headers, body, until=until)
            except socket.timeout:
                # The build has waited long enough, so there is no second try.
                self._timed_out()
                return None
            except (OSError, ValueError) as error:
                reply, reason = None, _reason(error)
            else:
                if reply.status not in _AGAIN:
                    self._succeeded(time.monotonic() - sent_at)
                    return reply
                reason = f"status {reply.status}"
                if reply.status in _REFUSED:
                    self.places.refused()
                    tries = _REFUSED_TRIES if until < math.inf else _REFUSED_UPLOAD_TRIES
            attempt += 1
            seconds = _wait(reply, attempt)
            if body is not None and not body.is_whole:
                if reply is not None and reply.status in _REFUSED:
                    # Busy. Without a second try, this is no sign that nobody answers.
                    return reply
                break
            if attempt >= tries or time.monotonic() + seconds > until:
                break
            time.sleep(seconds)
            if reply is not None:
                reply.close()
        self._failed(reason)
        return reply

    def _blocks(self, reply: Reply, url: str | None) -> Generator[bytes, None, None]:
        """The bytes of a download. From storage, at `url`, it goes on where it was cut, but not if it hangs."""
        at, size, resumes, heard = 0, reply.length or 0, 0, time.monotonic()
        try:
            while True:
                try:
                    for block in reply.blocks():
                        at += len(block)
                        yield block
                        heard = time.monotonic()
                except socket.timeout:
                    resumes = _RESUMES
                    self._timed_out()
                except (OSError, ValueError):
                    pass
                resumes += 1
                if at == size:
                    return
                following = None
                if url is not None and resumes <= _RESUMES:
                    following = self._rest(url, at, size, heard + self._pool.limits.silence)
                if following is None:
                    # In a pause, another line has the reason.
                    if self._may_ask():
                        self.say_once("cut", "a download was cut; its task runs again")
                    return
                reply.close()
                reply = following
        finally:
            reply.close()

    def _rest(self, url: str, at: int, size: int, until: float) -> Reply | None:
        headers = {"User-Agent": USER_AGENT, "Range": f"bytes={at}-"}
        found = self._send("GET", url, headers, until=until)
        if found is not None and (found.status, found.length) != (206, size - at):
            found.close()
            return None
        return found

    def _may_ask(self) -> bool:
        with self._lock:
            return time.monotonic() >= max(self._paused_until, self._off_until)

    @property
    def said(self) -> list[str]:
        """The lines that it has said, if their cause was met in the last minute."""
        since = time.monotonic() - _RECENT_SECONDS
        with self._lock:
            return [line for line, at in self._said.values() if at > since]

    @property
    def off(self) -> str:
        """Why Larder is not asked now, `""` if it is."""
        if self._may_ask():
            return ""
        return self._off_reason if time.monotonic() < self._off_until else _NO_ANSWER

    def _succeeded(self, seconds: float) -> None:
        with self._lock:
            self._failures = 0
            self._answered_at = time.monotonic()
        self.places.succeeded(seconds)

    def _timed_out(self) -> None:
        """Pause at once if no other request got an answer shortly before."""
        is_silent = time.monotonic() - self._answered_at > self._pool.limits.silence / 2
        self._failed("no answer in time", _FAILURES if is_silent else 1)

    def _failed(self, reason: str, failures: int = 1) -> None:
        """Pause after some failures in a row.

        Each pause is longer than one shortly before, so that a build waits for few requests in all.
        """
        with self._lock:
            now = time.monotonic()
            self._failures += failures
            if self._failures < _FAILURES or now < self._paused_until:
                return
            self._failures = 0
            # A download that hangs in the middle begins with an answer. So answers do not shorten the pauses.
            if now - self._paused_until > _MOST_PAUSE_SECONDS:
                self._pause_seconds = _PAUSE_SECONDS
            self._paused_until = now + self._pause_seconds
            self._pause_seconds = min(2 * self._pause_seconds, _MOST_PAUSE_SECONDS)
        self.say_once("failed", f"Larder does not answer ({reason}); the build goes on without it")

    def _give_up(self, reply: Reply, what: str) -> str:
        """Remember what an answer says about all requests that follow. `_failed` has said what may pass.

        Returns it in short.
        """
        status, text = reply.status, _drop(reply)
        known = _code(text)
        code = known or f"status {status}"
        if status in _AGAIN:
            return code
        if status == 401:
            self.turn_off("Larder refuses the token (401)", _REFUSED_SECONDS)
        elif status == 403 and what == "an upload" and known in _READ_ONLY:
            self._is_read_only = True
            self.say_once("read only", f"{_CANNOT_STORE}: nothing is uploaded")
        elif status == 404 and what == "an upload" and not known:
            self.turn_off(_ELSEWHERE)
        elif status != 404 or what == "an upload":
            self.say_once(f"{what} {code}", f"Larder refuses {what} ({code}){_message(text)}")
        return self.refusal or code

    def tell_damaged(self) -> None:
        """Say once that a download had other bytes than those that were stored."""
        self.say_once("damaged", "a download is damaged; its task runs again")

    def turn_off(self, reason: str, seconds: float = math.inf) -> None:
        """Ask nothing from now on: all is missing."""
        self._off_reason, self._off_until = reason, time.monotonic() + seconds
        self.say_once("off", f"no cache: {reason}")

    def say_once(self, key: str, line: str) -> None:
        with self._lock:
            is_new = key not in self._said
            self._said[key] = (line, time.monotonic())
        if is_new:
            self._say(line)


def _drop(reply: Reply) -> str:
    """The text of an answer that is over, so that its connection is kept. `""` if it is cut."""
    try:
        return reply.read().decode(errors="replace")
    except (OSError, ValueError):
        return ""


def _reason(error: Exception) -> str:
    name = type(error).__name__
    if name == "SSLCertVerificationError":
        return (
            f"{name}: set SSL_CERT_FILE or NODE_EXTRA_CA_CERTS to the certificates of your company"
        )
    is_clear = isinstance(error, Malformed) or "HTTPS_PROXY" in str(error)
    return str(error) if is_clear else name


def _wait(reply: Reply | None, attempt: int) -> float:
    """The seconds before the next try. Those that were refused together do not come back together."""
    asked = reply.header("retry-after") if reply is not None else ""
    if asked.isdigit():
        return min(float(asked), _MOST_WAIT_SECONDS)
    # Not before the first failure, because builds wait for the imports.
    import random

    return 0.15 * float(2**attempt) * (0.5 + random.random())  # noqa: S311  # no secret


def _code(text: str) -> str:
    """The code of an error of Larder, `""` if it has none."""
    return "".join(char for char in _error(text, "code")[:60] if char.isalnum() or char in "_-")


def _message(text: str) -> str:
    """What an error of Larder says, for a terminal, after a colon. `""` if it says nothing."""
    said = _error(text, "message")[:400]
    return f": {''.join(char if char.isprintable() else ' ' for char in said)}" if said else ""


def _error(text: str, field: str) -> str:
    try:
        return str(json.loads(text)["error"][field])
    except (ValueError, KeyError, TypeError):
        return ""
