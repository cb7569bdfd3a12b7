"""The scenarios of the fault matrix: for each route, and each function without one, the data before, the request, and
what must hold after a client has repeated it.

A scenario is a generator:

1. It sets up its data and yields the request.
2. It gets the first reply, or None if the function crashed, checks what readers see now, and yields again.
3. It gets all replies, the last one of the repeated request, and checks the result.

`done_before` has the errors that a repeated request can get because the first was carried out and its reply got lost.
"""

import re
import secrets
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx

from larder import clock
from larder.accounts import link_tokens, password_resets
from larder.accounts import repository as accounts
from larder.accounts.email_jobs import MailContext, RequestDescription
from larder.accounts.models import User
from larder.accounts.service import create_user, find_user, find_user_by_email, read_account
from larder.accounts.sessions import find_session
from larder.accounts.sign_in import SignIn, sign_in
from larder.api_keys import keys
from larder.api_keys import repository as key_store
from larder.api_keys.models import TRUST, ApiKey, RateLimit, Refill
from larder.api_keys.properties import NewKey
from larder.artifacts.models import ArtifactHash
from larder.artifacts.removals import ask_removal
from larder.artifacts.repository import index
from larder.artifacts.repository.totals import read_totals
from larder.conditions import begins_with, equals
from larder.errors import LarderError
from larder.invitations import service as invitations
from larder.invitations.models import Invitation, Invitee
from larder.settings import settings
from larder.sso import repository as sso_store
from larder.sso import service as sso
from larder.tables import ARTIFACTS
from larder.teams import members, teams
from larder.teams.members import add_member, role_of
from larder.teams.models import Member, Role, RunInputs
from larder.teams.protection import read_protection
from larder.teams.repository import read_places
from larder.teams.state import change_state
from larder.teams.teams import find_team
from larder.trust import rules
from larder.trust.models import NewRule, Rule
from larder.turbo_login.service import Grant, create_token
from larder.why import storage as run_storage
from larder.why.runs import read_run
from local.template import load_template
from tests.catalogue import NAMES, valid
from tests.direct_uploads import PREFLIGHT, put_object
from tests.everything import create_everything
from tests.functions.usage import reports
from tests.issuer import GITHUB, ORIGIN, Issuer, github_claims
from tests.proofs.fault_world import Subject, function, in_hours, later
from tests.requests import Browser, Reply, Sender
from tests.sso.conftest import ORIGIN as LOOPBACK
from tests.sso.hostile_provider import HostileProvider, serving_provider
from tests.sso.providers import SECRET, add_acme, link

Request = Callable[[], Reply]
Play = Generator[Request | None, Any, None]


@dataclass(frozen=True)
class Scenario:
    """`route` is `METHOD /path`, or the logical id of a function without one.

    With `known`, the request goes to an instance that has seen the key, and otherwise to a new one.
    """

    route: str
    variant: str
    play: Callable[[Subject], Play]
    done_before: frozenset[tuple[int, str]]
    in_part: Callable[[Reply], bool]
    succeeds: Callable[[Reply], bool] | None
    known: bool

    def __str__(self) -> str:
        return f"{self.route} ({self.variant})" if self.variant else self.route


SCENARIOS: list[Scenario] = []


def scenario(
    *routes: str,
    variant: str = "",
    done_before: Mapping[int, str] | None = None,
    in_part: Callable[[Reply], bool] = lambda _: False,
    succeeds: Callable[[Reply], bool] | None = None,
    known: bool = False,
) -> Callable[[Callable[[Subject], Play]], Callable[[Subject], Play]]:
    def add(play: Callable[[Subject], Play]) -> Callable[[Subject], Play]:
        errors = (done_before or {}).items()
        done = frozenset((status, code) for status, codes in errors for code in codes.split())
        SCENARIOS.extend(Scenario(route, variant, play, done, in_part, succeeds, known) for route in routes)
        return play

    return add


# Artifacts ---------------------------------------------------------------------------------------

Stored = tuple[bytes, str | None]
"""The bytes of an artifact and its tag."""


def made(size: int = 3_000, signed: bool = True) -> Stored:
    return secrets.token_bytes(size), None if not signed else secrets.token_hex(8)


def put(s: Subject, artifact: Stored, hash: str = "") -> Reply:
    body, tag = artifact
    headers = {"x-artifact-duration": "1234", **({"x-artifact-tag": tag} if tag else {})}
    return s.send("PUT", f"/v8/artifacts/{hash or s.hash}", body=body, headers=headers)


def stored_before(s: Subject, artifact: Stored, hash: str = "") -> None:
    reply = put(s, artifact, hash)
    assert reply.status == 202, reply
    s.lose_events()


def stored_by(s: Subject, user: User, token: str) -> None:
    """Store an artifact of a user, without a team, with their key."""
    s.owners.append(user.id)
    reply = Sender(token)("PUT", f"/v8/artifacts/{s.hash}", body=made()[0])
    assert reply.status == 202, reply
    s.lose_events()


def read(s: Subject, hash: str = "") -> Stored | None:
    """The artifact that GET returns, or None. HEAD must agree with it."""
    path = f"/v8/artifacts/{hash or s.hash}"
    head, reply = s.send("HEAD", path), s.send("GET", path)
    if reply.status == 404:
        assert head.status == 404, "HEAD finds what GET does not"
        return None
    body = reply.body
    if reply.status == 302:
        download = httpx.get(reply.headers["location"], trust_env=False)
        assert download.status_code == 200, "the redirect does not work"
        body = download.content
    assert reply.status in (200, 302), reply
    assert head.status == 200, "GET finds what HEAD does not"
    assert int(head.headers["content-length"]) == len(body), "HEAD returns another size"
    return body, reply.headers.get("x-artifact-tag")


def check_artifact(s: Subject, *may_be: Stored | None, hash: str = "") -> None:
    """Readers get one of these artifacts, complete and with its own tag."""
    found = read(s, hash)
    assert found in may_be, f"a wrong artifact: {found and (len(found[0]), found[1])}"


def offer(s: Subject, hash: str = "") -> str:
    """Request a direct upload. Returns its URL."""
    reply = s.send("OPTIONS", f"/v8/artifacts/{hash or s.hash}", headers=PREFLIGHT)
    assert reply.status == 204, reply
    return reply.headers["location"]


def upload(location: str, body: bytes) -> str:
    """Upload an object. Returns its version."""
    reply = httpx.put(location, content=body, trust_env=False)
    assert reply.status_code == 200
    return reply.headers["x-amz-version-id"]


def totals_of(s: Subject) -> tuple[int, int]:
    totals = read_totals(s.team.id)
    return totals.size_bytes, totals.artifacts


PUT = "PUT /v8/artifacts/{hash}"
GET = "GET /v8/artifacts/{hash}"
HEAD = "HEAD /v8/artifacts/{hash}"


@scenario(PUT)
def put_artifact(s: Subject) -> Play:
    artifact = made(150_000)
    yield lambda: put(s, artifact)
    check_artifact(s, None, artifact)
    yield None
    check_artifact(s, artifact)


@scenario(PUT, variant="that replaces another")
def put_in_place(s: Subject) -> Play:
    before, after = made(), made(150_000)
    stored_before(s, before)
    yield lambda: put(s, after)
    check_artifact(s, before, after)
    yield None
    check_artifact(s, after)


@scenario(PUT, variant="with a quota")
def put_with_quota(s: Subject) -> Play:
    change_state(s.team.id, quota_bytes=20_000)
    artifact = made()
    yield lambda: put(s, artifact)
    check_artifact(s, None, artifact)
    yield None
    check_artifact(s, artifact)


def check_refusal(s: Subject) -> None:
    """A refused upload is noted. A fault can cost the note, and nothing else."""
    of_owner = equals(owner=s.team.id) & begins_with(hash="#refused#")
    noted = [item.keys() >= {"quota_full", "expires_at"} for item in ARTIFACTS.query(of_owner)]
    assert noted == [True] or (s.disturbed and noted == [])


@scenario(PUT, variant="refused")
def put_past_quota(s: Subject) -> Play:
    change_state(s.team.id, quota_bytes=1_000)
    with option_set(s, "over_quota", "refuse", usually="refuse"):
        yield lambda: put(s, made())
        check_artifact(s, None)
        yield None
    check_artifact(s, None)
    check_refusal(s)


@contextmanager
def option_set(s: Subject, name: str, value: str, *, usually: str) -> Generator[None]:
    s.world.option(name, value)
    try:
        yield
    finally:
        s.world.option(name, usually)


def evicting(s: Subject) -> AbstractContextManager[None]:
    return option_set(s, "over_quota", "evict", usually="refuse")


@scenario(PUT, variant="that makes room")
def put_making_room(s: Subject) -> Play:
    change_state(s.team.id, quota_bytes=10_000)
    with evicting(s):
        old, artifact = [made(4_500), made(4_500)], made(4_000)
        for number, one in enumerate(old):
            stored_before(s, one, f"{s.tag}{number}")
        yield lambda: put(s, artifact)
        check_artifact(s, None, artifact)
        yield None
        check_artifact(s, artifact)
        kept = [read(s, f"{s.tag}{number}") for number in range(2)]
        assert all(one in (None, was) for one, was in zip(kept, old, strict=True))


KNOWN = "with a known key"


def next_minute(s: Subject, method: str, path: str) -> Reply:
    """Send a request so long after the last one that it also records a use of the key."""
    with later(timedelta(minutes=2)):
        return s.send(method, path)


EDGE_URL = "https://edge.example.com"


def with_edge(s: Subject) -> AbstractContextManager[None]:
    return option_set(s, "edge_url", EDGE_URL, usually="")


def as_ever(_: Subject) -> AbstractContextManager[None]:
    return nullcontext()


def reading(s: Subject, *, size: int, within: Callable[[Subject], AbstractContextManager[None]], known: bool) -> Play:
    """Send GET or HEAD for an artifact of this size."""
    method = s.route.partition(" ")[0]
    artifact = made(size, signed=size < 10_000)
    stored_before(s, artifact)
    send = partial(next_minute, s) if known else s.send
    with within(s):
        yield lambda: send(method, f"/v8/artifacts/{s.hash}")
        replies = yield None
    assert replies[-1].status == 302 or replies[-1].body == (artifact[0] if method == "GET" else b"")
    check_artifact(s, artifact)


for _route, _variant, _size, _within, _known in (
    (GET, "", 3_000, as_ever, False),
    (GET, "of a body in the index", 500, as_ever, False),
    (GET, f"of a body in the index, {KNOWN}", 500, as_ever, True),
    (GET, "by redirect", 300_000, as_ever, False),
    (GET, "by redirect to the edge", 300_000, with_edge, False),
    (GET, "where uses are recorded", 3_000, evicting, False),
    (HEAD, "", 3_000, as_ever, False),
    (HEAD, KNOWN, 3_000, as_ever, True),
):
    scenario(_route, variant=_variant, known=_known)(partial(reading, size=_size, within=_within, known=_known))


@scenario(GET, variant="of an upload that has just arrived")
def fetch_publishing(s: Subject) -> Play:
    artifact = made(2_000, signed=False)
    upload(offer(s), artifact[0])
    s.lose_events()
    yield lambda: s.send("GET", f"/v8/artifacts/{s.hash}")
    check_artifact(s, artifact)
    yield None
    check_artifact(s, artifact)


@scenario(HEAD, variant="of an upload that has just arrived and replaces another")
def exists_publishing(s: Subject) -> Play:
    before, after = made(), made(2_000, signed=False)
    stored_before(s, before)
    upload(offer(s), after[0])
    s.lose_events()
    yield lambda: s.send("HEAD", f"/v8/artifacts/{s.hash}")
    check_artifact(s, before, after)
    yield None
    check_artifact(s, after)


@scenario(HEAD, variant="not found")
def exists_not(s: Subject) -> Play:
    yield lambda: s.send("HEAD", f"/v8/artifacts/{s.hash}")
    yield None


def _some_failed(reply: Reply) -> bool:
    return any(entry and "error" in entry for entry in reply.json.values())


@scenario("POST /v8/artifacts", in_part=_some_failed)
def query(s: Subject) -> Play:
    stored, came = made(), made(2_000, signed=False)
    stored_before(s, stored)
    upload(offer(s, f"{s.tag}01"), came[0])
    s.lose_events()
    hashes = [s.hash, f"{s.tag}01", f"{s.tag}02"]
    yield lambda: s.send("POST", "/v8/artifacts", json_body={"hashes": hashes})
    check_artifact(s, stored)
    replies = yield None
    sizes = [entry and entry["size"] for entry in replies[-1].json.values()]
    assert sizes == [3_000, 2_000, None]


@scenario("POST /v8/artifacts/events")
def events(s: Subject) -> Play:
    batch = [valid("POST /v8/artifacts/events", hash=s.hash).json[0]] * 3
    yield lambda: s.send("POST", "/v8/artifacts/events", json_body=batch)
    replies = yield None
    # Larder stores a batch and its figures together. Each repeated request can count once more.
    counted = s.send("GET", "/v1/usage").json["total"]["events"]
    assert counted in {3 * count for count in range(1, len(replies) + 1 + s.crashes)}, counted


@scenario("GET /v8/artifacts/status", variant=KNOWN, known=True)
def status_with_known_key(s: Subject) -> Play:
    yield lambda: next_minute(s, "GET", "/v8/artifacts/status")
    yield None


@scenario("GET /v8/artifacts/status", variant="by a session")
def status_by_session(s: Subject) -> Play:
    send = s.sender(s.session())
    yield lambda: send("GET", "/v8/artifacts/status")
    yield None


@scenario("GET /v8/artifacts/status", variant="with an allowance")
def status_with_allowance(s: Subject) -> Play:
    key, token = s.new_key(remaining=50)
    send = s.sender(token)
    yield lambda: send("GET", "/v8/artifacts/status")
    yield None
    check_uses(s, key.key_hash, 50)


@scenario("OPTIONS /v8/artifacts/{hash}")
def preflight(s: Subject) -> Play:
    artifact = made(2_000, signed=False)
    yield lambda: s.send("OPTIONS", f"/v8/artifacts/{s.hash}", headers=PREFLIGHT)
    replies = yield None
    upload(replies[-1].headers["location"], artifact[0])
    check_artifact(s, artifact)


@scenario("OPTIONS /v8/artifacts/{hash}", variant="with the edge")
def preflight_of_edge(s: Subject) -> Play:
    artifact = made(2_000, signed=False)
    with with_edge(s):
        yield lambda: s.send("OPTIONS", f"/v8/artifacts/{s.hash}", headers=PREFLIGHT)
        replies = yield None
    address = replies[-1].headers["location"]
    if address.startswith(f"{EDGE_URL}/"):
        put_object(urlsplit(address).path.removeprefix("/"), artifact[0])
    else:
        upload(address, artifact[0])
    check_artifact(s, artifact)


@scenario("DELETE /v1/artifacts/{hash}")
def delete_artifact(s: Subject) -> Play:
    artifact = made()
    stored_before(s, artifact)
    yield lambda: s.send("DELETE", f"/v1/artifacts/{s.hash}")
    check_artifact(s, artifact, None)
    yield None
    check_artifact(s, None)


@scenario("DELETE /v1/artifacts/{hash}", variant="with an open upload")
def delete_offered(s: Subject) -> Play:
    artifact = made()
    stored_before(s, artifact)
    location = offer(s)
    yield lambda: s.send("DELETE", f"/v1/artifacts/{s.hash}")
    check_artifact(s, artifact, None)
    yield None
    upload(location, b"too late")
    s.world.deliver_events()
    check_artifact(s, None)


@scenario("DELETE /v1/artifacts")
def delete_target(s: Subject) -> Play:
    artifact = made()
    stored_before(s, artifact)
    yield lambda: s.send("DELETE", f"/v1/artifacts?writer={s.user.id}")
    check_artifact(s, artifact, None)
    yield None
    s.world.run_jobs()
    # If the job was not invoked, the sweep does it.
    with later(in_hours(1)):
        function("artifacts.sweep_artifacts.handler")
    check_artifact(s, None)


# Keys --------------------------------------------------------------------------------------------

KEY = "/api-key"


def check_uses(s: Subject, key_hash: str, initial_uses: int) -> None:
    """The key has lost exactly the uses that the store took, including calls whose reply got lost."""
    key = key_store.get(key_hash)
    assert key is not None
    assert key.remaining == initial_uses - s.uses_taken(), "the remaining uses are wrong"


METADATA = {"repo": "web"}


def check_metadata(key_hash: str, expected: dict[str, str] | None) -> None:
    """The metadata is stored with the key and, if there is no metadata or no key, not without it."""
    key = key_store.get(key_hash)
    found = None if key is None else key_store.with_metadata(key).metadata
    assert found == expected
    item = key_store.API_KEYS.get(f"#metadata#{key_hash}")
    assert (item is not None) == (expected is not None), "metadata is left"


def _valid(reply: Reply) -> bool:
    return reply.status == 200 and reply.json["valid"] is True


def verify(s: Subject, token: str) -> Reply:
    return s.ask("POST", f"{KEY}/verify", {"key": token})


VERIFY = f"POST /api/auth{KEY}/verify"


@scenario(VERIFY, succeeds=_valid)
def verify_key(s: Subject) -> Play:
    yield lambda: verify(s, s.token)
    yield None


@scenario(VERIFY, variant="with an allowance", succeeds=_valid)
def verify_allowance(s: Subject) -> Play:
    key, token = s.new_key(remaining=50)
    yield lambda: verify(s, token)
    yield None
    check_uses(s, key.key_hash, 50)


@scenario(VERIFY, variant="the last use", succeeds=_valid, done_before={200: "usage_exceeded invalid_api_key"})
def verify_last_use(s: Subject) -> Play:
    key, token = s.new_key(remaining=1)
    yield lambda: verify(s, token)
    replies = yield None
    assert sum(map(_valid, replies)) <= 1, "one use succeeded twice"
    assert not _valid(verify(s, token))
    assert key_store.get(key.key_hash) is None, "a key without uses or a refill is not deleted"


@scenario(VERIFY, variant="with metadata", succeeds=_valid)
def verify_with_metadata(s: Subject) -> Play:
    key, token = s.new_key(metadata=METADATA)
    yield lambda: verify(s, token)
    replies = yield None
    assert replies[-1].json["key"]["metadata"] == METADATA
    check_metadata(key.key_hash, METADATA)


@scenario(
    VERIFY, variant="the last use, with metadata", succeeds=_valid, done_before={200: "usage_exceeded invalid_api_key"}
)
def verify_last_use_with_metadata(s: Subject) -> Play:
    key, token = s.new_key(remaining=1, metadata=METADATA)
    yield lambda: verify(s, token)
    replies = yield None
    assert all(reply.json["key"]["metadata"] == METADATA for reply in replies if _valid(reply))
    assert not _valid(verify(s, token))
    check_metadata(key.key_hash, None)


@scenario(VERIFY, variant="a refill is due", succeeds=_valid)
def verify_refill(s: Subject) -> Play:
    key, token = s.new_key(remaining=1, refill=Refill(interval_ms=3_600_000, amount=10))
    with later(in_hours(1.5)):
        yield lambda: verify(s, token)
        yield None
        stored = key_store.get(key.key_hash)
        assert stored is not None
        assert stored.remaining is not None
        assert 11 - s.tries_of("UpdateItem api-keys") <= stored.remaining <= 10


@scenario(VERIFY, variant="with a rate limit", succeeds=_valid)
def verify_rate(s: Subject) -> Play:
    limit = RateLimit(enabled=True, window_ms=3_600_000, max_requests=20)
    key, token = s.new_key(rate_limit=limit)
    yield lambda: verify(s, token)
    yield None
    stored = key_store.get(key.key_hash)
    assert stored is not None
    assert stored.request_count == s.uses_taken(), "the count of the window is wrong"


@scenario(f"POST /api/auth{KEY}/create")
def create_key(s: Subject) -> Play:
    token = s.session()
    body = {"name": "new", "metadata": METADATA}
    yield lambda: s.ask("POST", f"{KEY}/create", body, token=token)
    replies = yield None
    named = [key for key in keys.list_keys(s.user.id) if key.name == "new"]
    # A key whose reply got lost exists and is listed, but no one has its token.
    assert 1 <= len(named) <= s.times_sent
    for key in named:
        check_metadata(key.key_hash, METADATA)
    assert _valid(verify(s, replies[-1].json["key"]))


@scenario(f"POST /api/auth{KEY}/create", variant="the first trusted one")
def create_trusted_key(s: Subject) -> Play:
    token = s.session()
    permissions = {"artifacts": ["read", "write", TRUST]}
    body = {"teamId": s.team.id, "permissions": permissions}
    yield lambda: s.ask("POST", f"{KEY}/create", body, token=token)
    trusted = [key for key in keys.list_keys(s.user.id) if key.team_id == s.team.id]
    assert bool(read_protection(s.team.id).on) == bool(trusted), "not in one transaction"
    yield None
    assert read_protection(s.team.id).on


@scenario(f"POST /api/auth{KEY}/create", variant="that replaces another")
def rotate_key(s: Subject) -> Play:
    token = s.session()
    old, _ = s.new_key(name="old")
    body = {"name": "new", "replaces": old.id}

    def successors() -> list[ApiKey]:
        return [key for key in keys.list_keys(s.user.id) if key.name == "new"]

    yield lambda: s.ask("POST", f"{KEY}/create", body, token=token)
    stored = key_store.get(old.key_hash)
    assert stored is not None
    assert (stored.expires_at is not None) == bool(successors()), "not in one transaction"
    replies = yield None
    assert 1 <= len(successors()) <= s.times_sent
    assert _valid(verify(s, replies[-1].json["key"]))


def of_team(s: Subject, **fields: object) -> dict[str, object]:
    """The body for a key that the team owns."""
    return {"configId": "team", "organizationId": s.team.id, **fields}


@scenario(f"POST /api/auth{KEY}/create", variant="that the team owns")
def create_team_key(s: Subject) -> Play:
    token = s.session()
    body = of_team(s, name="new", metadata=METADATA)
    yield lambda: s.ask("POST", f"{KEY}/create", body, token=token)
    replies = yield None
    found = keys.list_keys(s.team.id)
    assert 1 <= len(found) <= s.times_sent
    for key in found:
        check_metadata(key.key_hash, METADATA)
    assert _valid(verify(s, replies[-1].json["key"]))


@scenario(f"POST /api/auth{KEY}/create", variant="that the team owns, in place of a member's")
def make_key_of_team(s: Subject) -> Play:
    token = s.session()
    old, _ = s.new_key(name="old", team_id=s.team.id, metadata=METADATA)
    body = of_team(s, name="new", replaces=old.id)
    yield lambda: s.ask("POST", f"{KEY}/create", body, token=token)
    stored = key_store.get(old.key_hash)
    assert stored is not None
    assert (stored.expires_at is not None) == bool(keys.list_keys(s.team.id)), "not in one transaction"
    replies = yield None
    for key in keys.list_keys(s.team.id):
        check_metadata(key.key_hash, METADATA)
    assert _valid(verify(s, replies[-1].json["key"]))


@scenario(f"POST /api/auth{KEY}/delete", variant="that the team owns", done_before={404: "key_not_found"})
def delete_team_key(s: Subject) -> Play:
    token = s.session()
    made = s.ask("POST", f"{KEY}/create", of_team(s), token=token).json
    body = {"keyId": made["id"], "configId": "team"}
    yield lambda: s.ask("POST", f"{KEY}/delete", body, token=token)
    yield None
    assert keys.list_keys(s.team.id) == []
    assert not _valid(verify(s, made["key"]))


@scenario(f"POST /api/auth{KEY}/update")
def update_key(s: Subject) -> Play:
    token = s.session()
    body = {"keyId": s.key.id, "name": "renamed", "enabled": False, "metadata": METADATA}
    yield lambda: s.ask("POST", f"{KEY}/update", body, token=token)
    yield None
    stored = key_store.get(s.key.key_hash)
    assert stored is not None
    assert (stored.name, stored.enabled) == ("renamed", False)
    check_metadata(s.key.key_hash, METADATA)


@scenario(f"POST /api/auth{KEY}/delete", done_before={404: "key_not_found"})
def delete_key(s: Subject) -> Play:
    token = s.session()
    key, _ = s.new_key(metadata=METADATA)
    yield lambda: s.ask("POST", f"{KEY}/delete", {"keyId": key.id}, token=token)
    yield None
    check_metadata(key.key_hash, None)


def expired_key(s: Subject) -> str:
    new = NewKey(user_id=s.user.id, expires_in_s=1, metadata=METADATA)
    key, _ = keys.create_key(new, now=clock.now() - timedelta(seconds=2))
    return key.key_hash


# Users ------------------------------------------------------------------------------------------

FIRST, SECOND = "the first password", "the second password"


def signs_in(s: Subject, password: str, email: str = "") -> bool:
    given = SignIn(email=email or s.user.email, password=password)
    try:
        sign_in(given, _mail_context(), now=clock.now())
    except LarderError:
        return False
    return True


def _mail_context() -> MailContext:
    request = RequestDescription(method="POST", path="/", ip_address=None, user_agent=None)
    return MailContext(base_url="https://cache.example.com", request=request)


@scenario("POST /api/auth/sign-up/email", done_before={422: "user_already_exists_use_another_email"})
def sign_up(s: Subject) -> Play:
    email = s.email("new")
    body = {"email": email, "password": FIRST, "name": "New"}
    yield lambda: s.ask("POST", "/sign-up/email", body)
    yield None
    assert signs_in(s, FIRST, email)


@scenario("POST /api/auth/sign-up/email", variant="where addresses must be verified")
def sign_up_verifying(s: Subject) -> Play:
    email = s.email("new")
    s.world.option("require_email_verification", "true")
    try:
        body = {"email": email, "password": FIRST, "name": "New"}
        yield lambda: s.ask("POST", "/sign-up/email", body)
        yield None
        assert find_user_by_email(email) is not None
        assert s.world.handed_over, "no mail job"
    finally:
        s.world.option("require_email_verification", "false")


@scenario("POST /api/auth/sign-out", done_before={401: "unauthorized"})
def sign_out(s: Subject) -> Play:
    token = s.session()
    yield lambda: s.ask("POST", "/sign-out", token=token)
    yield None
    assert find_session(token, now=clock.now()) is None


@scenario("POST /api/auth/revoke-session")
def revoke_session(s: Subject) -> Play:
    token, other = s.session(), s.session()
    yield lambda: s.ask("POST", "/revoke-session", {"token": other}, token=token)
    yield None
    assert find_session(other, now=clock.now()) is None
    assert find_session(token, now=clock.now()) is not None


@scenario("GET /api/auth/get-session", variant="that extends the session")
def extend_session(s: Subject) -> Play:
    token = s.session()
    with later(timedelta(days=2)):
        yield lambda: s.ask("GET", "/get-session", token=token)
        yield None
    with later(timedelta(days=8)):
        assert find_session(token, now=clock.now()) is not None


@scenario("GET /api/auth/verify-email")
def verify_email(s: Subject) -> Play:
    token = link_tokens.issue_verification_token(s.user, now=clock.now())
    yield lambda: s.ask("GET", f"/verify-email?token={token}")
    yield None
    assert read_account(s.user.id).user.email_verified


@scenario("GET /api/auth/verify-email", variant="of a new address")
def verify_new_email(s: Subject) -> Play:
    new = s.email("lovelace")
    token = link_tokens.issue_verification_token(s.user, new_email=new, now=clock.now())
    yield lambda: s.ask("GET", f"/verify-email?token={token}")
    yield None
    assert read_account(s.user.id).user.email == new
    assert find_user_by_email(s.user.email) is None


@scenario("POST /api/auth/reset-password", done_before={400: "invalid_token"})
def reset_password(s: Subject) -> Play:
    token, session = password_resets.issue_reset_token(s.user, now=clock.now()), s.session()
    keys.create_key(NewKey(user_id=s.user.id), now=clock.now())
    body = {"newPassword": SECOND, "token": token}
    yield lambda: s.ask("POST", "/reset-password", body)
    yield None
    assert signs_in(s, SECOND)
    assert not signs_in(s, FIRST)
    assert find_session(session, now=clock.now()) is None
    # The schedule finishes what the request left.
    assert function("accounts.sweep_deleted_users.handler").status == 200
    assert keys.list_keys(s.user.id) == [], "a key from before the reset is left"


@scenario("POST /api/auth/change-password", done_before={400: "invalid_password"})
def change_password(s: Subject) -> Play:
    token = s.session()
    body = {"currentPassword": FIRST, "newPassword": SECOND}
    yield lambda: s.ask("POST", "/change-password", body, token=token)
    yield None
    assert signs_in(s, SECOND)
    assert not signs_in(s, FIRST)


@scenario("POST /api/auth/change-password", variant="and revoke other sessions", done_before={401: "unauthorized"})
def change_password_everywhere(s: Subject) -> Play:
    token, other = s.session(), s.session()
    body = {"currentPassword": FIRST, "newPassword": SECOND, "revokeOtherSessions": True}
    yield lambda: s.ask("POST", "/change-password", body, token=token)
    yield None
    assert signs_in(s, SECOND)
    assert find_session(other, now=clock.now()) is None


@scenario("POST /api/auth/delete-user", done_before={401: "unauthorized"})
def delete_user(s: Subject) -> Play:
    leaver = create_user(s.email("leaver"), "Leaver", password=FIRST, now=clock.now())
    add_member(s.team.id, leaver.id, Role.MEMBER, now=clock.now())
    key, token = keys.create_key(NewKey(user_id=leaver.id), now=clock.now())
    session = s.session(leaver)
    s.owners.append(leaver.id)
    yield lambda: s.ask("POST", "/delete-user", {"password": FIRST}, token=session)
    yield None
    assert find_user(leaver.id) is None
    assert find_session(session, now=clock.now()) is None
    # The schedule finishes what the request left.
    assert function("accounts.sweep_deleted_users.handler").status == 200
    assert key_store.get(key.key_hash) is None
    assert role_of(s.team.id, leaver.id) is None
    assert s.sender(token)("GET", "/v8/artifacts/status").status == 401


@scenario("DELETE /v3/user/tokens/current", variant="a session", done_before={401: "unauthorized"})
def revoke_token_of_session(s: Subject) -> Play:
    token = s.session()
    yield lambda: s.sender(token)("DELETE", "/v3/user/tokens/current")
    yield None
    assert find_session(token, now=clock.now()) is None


# Teams -------------------------------------------------------------------------------------------


def member_of(s: Subject, role: Role = Role.MEMBER, name: str = "bob") -> User:
    user = create_user(s.email(name), "Bob", password=FIRST, now=clock.now())
    add_member(s.team.id, user.id, role, now=clock.now())
    return user


def invited(s: Subject, name: str = "bob") -> tuple[Invitation, str]:
    invitee = Invitee(email=s.email(name), address=s.email(name), role=Role.MEMBER)
    (invitation,) = invitations.create_invitations(s.team.id, [invitee], by=None, now=clock.now())
    return invitation, invitations.issue_token(invitation)


@scenario("DELETE /v1/teams/{idOrSlug}", done_before={404: "team_not_found"})
def delete_team(s: Subject) -> Play:
    stored_before(s, made())
    yield lambda: s.send("DELETE", f"/v1/teams/{s.team.slug}")
    yield None
    assert find_team(s.team.id) is None
    assert find_team(s.team.slug) is None


def issuer_of(s: Subject) -> str:
    """An issuer that no other scenario uses, because each process has keys of its own."""
    return f"{GITHUB}/{s.tag}"


def rule_of(s: Subject) -> Rule:
    pinned = {"repository_id": "74", "repository_owner_id": "65"}
    new = NewRule(provider="github", issuer=issuer_of(s), pinned=pinned)
    return rules.create_rule(s.team.id, new, by=None, origin=ORIGIN, now=clock.now())


@scenario("POST /v1/teams/{idOrSlug}/rules", done_before={409: "rule_exists"})
def create_rule(s: Subject) -> Play:
    """The first rule, which protects the team."""
    body, send = valid("POST /v1/teams/{idOrSlug}/rules").json, s.sender(s.session())
    yield lambda: send("POST", f"/v1/teams/{s.team.slug}/rules", json_body=body)
    made = bool(rules.list_rules(s.team.id))
    assert bool(read_protection(s.team.id).on) == made, "not in one transaction"
    yield None
    assert read_protection(s.team.id).on
    # The count is exact: as many as there are can be deleted.
    (rule,) = rules.list_rules(s.team.id)
    rules.delete_rule(s.team.id, rule.id, by=None)


def exchanging(s: Subject) -> Request:
    """The request that exchanges an id token for a key of the team."""
    rule_of(s)
    issuer = Issuer(issuer_of(s))
    issuer.publish()
    request = valid("POST /login/oauth/token", team=s.team.slug, id_token=issuer.mint(github_claims()))
    sender = s.sender(None)
    return lambda: request(sender)


# The id token can have been used by the request whose reply was lost. A job then gets another one.
@scenario("POST /login/oauth/token", done_before={400: "invalid_request"})
def exchange_id_token(s: Subject) -> Play:
    yield exchanging(s)
    yield None
    (rule,) = rules.list_rules(s.team.id)
    assert len(keys.list_keys(rule.id)) == 1, "an id token must give exactly one key"


@scenario("POST /login/oauth/token/revoke")
def revoke_ci_token(s: Subject) -> Play:
    reply = exchanging(s)()
    token = reply.json["access_token"]
    sender = s.sender(None)
    request = valid("POST /login/oauth/token/revoke", ci_token=token)
    yield lambda: request(sender)
    yield None
    assert s.sender(token)("GET", "/v8/artifacts/status").status == 401


@scenario("PATCH /v1/teams/{idOrSlug}/members/{uid}")
def change_member(s: Subject) -> Play:
    bob = member_of(s)
    path, send = f"/v1/teams/{s.team.slug}/members/{bob.id}", s.sender(s.session())
    yield lambda: send("PATCH", path, json_body={"role": "OWNER"})
    yield None
    assert role_of(s.team.id, bob.id) is Role.OWNER
    # The count of owners is exact, because one of two owners can be removed.
    members.remove_member(s.team.id, bob.id, by=_actor(s))
    places_of = read_places(s.team.id)
    assert places_of.owners == 1


def _actor(s: Subject) -> Member:
    return Member(user_id=s.user.id, role=Role.OWNER, joined_at=clock.now())


@scenario("DELETE /v1/teams/{idOrSlug}/members/{uid}", done_before={404: "member_not_found"})
def remove_member(s: Subject) -> Play:
    bob = member_of(s, Role.OWNER)
    path = f"/v1/teams/{s.team.slug}/members/{bob.id}"
    yield lambda: s.send("DELETE", path)
    yield None
    assert role_of(s.team.id, bob.id) is None
    assert read_places(s.team.id).owners == 1


@scenario("DELETE /v1/teams/{idOrSlug}/members/{uid}", variant="an invitation", done_before={404: "member_not_found"})
def withdraw(s: Subject) -> Play:
    invitation, _ = invited(s)
    path = f"/v1/teams/{s.team.slug}/members/{invitation.id}"
    yield lambda: s.send("DELETE", path)
    yield None
    assert invitations.open_invitations(s.team.id, now=clock.now()) == []


@scenario(
    "POST /v1/teams/join", "POST /v1/teams/{idOrSlug}/members/teams/join", done_before={404: "invitation_not_found"}
)
def join(s: Subject) -> Play:
    bob = create_user(s.email("bob"), "Bob", email_verified=True, now=clock.now())
    _, token = invited(s)
    send = s.sender(s.session(bob))
    path = s.route.split()[1].replace("{idOrSlug}", s.team.slug)
    yield lambda: send("POST", path, json_body={"token": token})
    yield None
    assert role_of(s.team.id, bob.id) is Role.MEMBER
    assert invitations.open_invitations(s.team.id, now=clock.now()) == []


# Pages and logins --------------------------------------------------------------------------------


@scenario("$default", variant="not found")
def unknown(s: Subject) -> Play:
    yield lambda: s.send("GET", "/nowhere")
    replies = yield None
    assert replies[-1].status == 404


@scenario("POST /api/auth/turbo-login", variant="for one team")
def grant_sso_login(s: Subject) -> Play:
    browser = s.browser()
    body = {"redirectUri": "http://127.0.0.1:9789", "team": s.team.slug}
    yield lambda: browser.post("/turbo-login", body, headers=s.from_its_address())
    yield None


# Sign-in with a provider -----------------------------------------------------------------------------


def signing_in(s: Subject, provider: HostileProvider) -> Request:
    """The callback of a sign-in with a provider. One that comes again gets a status of its own, 409."""
    reply = provider.token_reply
    given: dict[str, tuple[int, Any]] = {}
    provider.token_reply = lambda form, headers: given.setdefault(  # type: ignore[method-assign]
        form["code"], reply(form, headers)
    )
    id = f"p{s.tag.lower()}"
    added = sso.add_provider(provider.settings(id=id, domains=(f"{s.tag.lower()}.example",)), SECRET)
    # As if a function had just fetched them. Without keys, the next try would follow after two seconds.
    now = clock.now()
    assert sso_store.claim_fetch(added, now=now, until=now)
    sso_store.store_keys(added, provider.jwks()["keys"], now=now, until=now)
    browser = Browser()
    headers = {"origin": LOOPBACK, **s.from_its_address()}
    body = {"provider": id, "callbackURL": "/console"}
    started = browser.post("/sign-in/social", body, headers=headers)
    assert started.status == 200, started
    query = urlencode(provider.authorize(started.json["url"]))
    cookies = dict(browser.cookies)

    def request() -> Reply:
        sent = Browser(cookies=dict(cookies))
        reply = sent.get(f"/callback/{id}?{query}", headers=headers)
        if reply.headers.get("location", "").endswith("error=state_mismatch"):
            return replace(reply, body=b'{"code": "state_mismatch"}')
        return reply

    return request


@contextmanager
def at_provider(s: Subject) -> Generator[HostileProvider]:
    with option_set(s, "base_url", LOOPBACK, usually=""), serving_provider() as provider:
        # Another cell may have had a provider at the same port.
        provider.person |= {"sub": s.tag, "email": f"person@{s.tag.lower()}.example"}
        yield provider


def check_one_account(s: Subject, provider: HostileProvider) -> User:
    """The person is one user, with one account and at most one session."""
    user = find_user_by_email(provider.person["email"])
    assert user is not None
    assert user.proven
    (account,) = accounts.list_provider_accounts(user.id)
    assert accounts.find_subject(provider.url, account.subject) == (user.id, account.id)
    assert len([session for session in accounts.list_sessions(user.id) if session.provider]) <= 1
    return user


@scenario("GET /api/auth/callback/{id}", done_before={302: "state_mismatch"})
def sign_in_with_provider(s: Subject) -> Play:
    with at_provider(s) as provider:
        yield signing_in(s, provider)
        yield None
        check_one_account(s, provider)


@scenario(
    "GET /api/auth/callback/{id}", variant="of an account that a stranger made", done_before={302: "state_mismatch"}
)
def claim_account(s: Subject) -> Play:
    with at_provider(s) as provider:
        email = provider.person["email"]
        stranger = create_user(email, "X", password=FIRST, now=clock.now())
        key, _ = keys.create_key(NewKey(user_id=stranger.id), now=clock.now())
        yield signing_in(s, provider)
        yield None
        assert check_one_account(s, provider).id == stranger.id
        assert not signs_in(s, FIRST, email)
        function("accounts.sweep_deleted_users.handler")
        assert key_store.get(key.key_hash) is None


@scenario("POST /api/auth/sign-in/social", "POST /api/auth/link-social")
def start_sign_in(s: Subject) -> Play:
    """It writes nothing, and each reply has another state."""
    provider = add_acme(id=f"p{s.tag.lower()}", domains=())
    token = s.session()
    path = s.route.rpartition("/api/auth")[2]
    yield lambda: s.ask("POST", path, {"provider": provider.id}, token=token)
    yield None


@scenario("POST /api/auth/sign-in/sso")
def start_sso(s: Subject) -> Play:
    domain = f"{s.tag.lower()}.example"
    add_acme(id=f"p{s.tag.lower()}", domains=(domain,))
    yield lambda: s.ask("POST", "/sign-in/sso", {"email": f"x@{domain}"})
    yield None


@scenario("POST /api/auth/unlink-account", done_before={400: "failed_to_unlink_last_account account_not_found"})
def unlink_account(s: Subject) -> Play:
    providers = [add_acme(id=f"p{n}{s.tag.lower()}", domains=()) for n in range(2)]
    token, own = s.session(), [link(s.user, provider, provider.id) for provider in providers]
    yield lambda: s.ask("POST", "/unlink-account", {"accountId": own[0].id}, token=token)
    yield None
    assert [provider_account.id for provider_account in accounts.list_provider_accounts(s.user.id)] == [own[1].id]


@scenario("GET /registration/verify", done_before={401: "invalid_login_code"})
def exchange_code(s: Subject) -> Play:
    code = create_token(s.user, Grant(sso_team=s.team.slug), now=clock.now()).text
    sender = s.sender(None)
    path = f"/registration/verify?token={code}&tokenName=x"
    yield lambda: sender("GET", path, headers=s.from_its_address())
    yield None
    made_of_it = [key for key in keys.list_keys(s.user.id) if key.name != s.key.name]
    assert len(made_of_it) == 1, "a code must create exactly one key"


# Functions without a route -------------------------------------------------------------------------


def created(key: str, size_bytes: int, version: str) -> dict[str, object]:
    """The event that S3 sends for a new object."""
    stored = {"key": key, "size": size_bytes, "version-id": version}
    detail = {"bucket": {"name": settings().artifacts_bucket}, "object": stored}
    return {"source": "aws.s3", "detail-type": "Object Created", "detail": detail}


COMMIT = "artifacts.commit_upload.handler"
SWEEP = "artifacts.sweep_artifacts.handler"
REMOVE = "artifacts.remove_artifacts.handler"


def arrive(s: Subject, body: bytes) -> dict[str, object]:
    location = offer(s)
    version = upload(location, body)
    s.lose_events()
    key = urlsplit(location).path.removeprefix(f"/{settings().artifacts_bucket}/")
    return created(key, len(body), version)


@scenario("CommitUpload")
def commit(s: Subject) -> Play:
    artifact = made(2_000, signed=False)
    event = arrive(s, artifact[0])
    yield lambda: function(COMMIT, event)
    check_artifact(s, artifact)
    yield None
    check_artifact(s, artifact)


@scenario("CommitUpload", variant="that replaces another")
def commit_in_place(s: Subject) -> Play:
    before, after = made(), made(2_000, signed=False)
    stored_before(s, before)
    event = arrive(s, after[0])
    yield lambda: function(COMMIT, event)
    index_before = artifacts_seen(s)
    assert index_before in (3_000, 2_000)
    yield None
    check_artifact(s, after)


def artifacts_seen(s: Subject) -> int | None:
    artifact = index.read_entry(s.team.id, ArtifactHash(s.hash)).artifact
    return None if artifact is None else artifact.size_bytes


@scenario("CommitUpload", variant="over the quota")
def commit_past_quota(s: Subject) -> Play:
    event = arrive(s, made(2_000, signed=False)[0])
    change_state(s.team.id, quota_bytes=1_000)
    yield lambda: function(COMMIT, event)
    assert artifacts_seen(s) is None
    yield None
    check_artifact(s, None)
    check_refusal(s)


def run_again_after_a_fault(s: Subject, handler: str = SWEEP) -> None:
    """Run the function again after a fault, because it leaves a failed item to its next run."""
    if s.disturbed:
        function(handler)


def sweep_on(s: Subject, since: timedelta) -> None:
    """Run the next sweeps: objects are kept for downloads in progress, and totals are corrected a day later."""
    for hours in (1, 26, 28, 30):
        with later(since + in_hours(hours)):
            assert function(SWEEP).status == 200


@scenario("SweepArtifacts")
def sweep(s: Subject) -> Play:
    replaced, kept = made(), made()
    stored_before(s, replaced)
    stored_before(s, kept)
    gone, came = f"{s.tag}01", f"{s.tag}02"
    offer(s, gone)
    upload(offer(s, came), b"came")
    s.lose_events()
    with later(in_hours(25)):
        yield lambda: function(SWEEP)
        yield None
        run_again_after_a_fault(s)
    assert artifacts_seen(s) == 3_000
    assert index.read_entry(s.team.id, ArtifactHash(gone)).pending is None
    assert index.read_entry(s.team.id, ArtifactHash(came)).artifact is not None


@scenario("SweepArtifacts", variant="of expired artifacts")
def sweep_expired(s: Subject) -> Play:
    stored_before(s, made())
    with later(timedelta(days=31)):
        yield lambda: function(SWEEP)
        yield None
        run_again_after_a_fault(s)
        check_artifact(s, None)
        assert artifacts_seen(s) is None
    sweep_on(s, timedelta(days=31))


@scenario("SweepArtifacts", variant="of an artifact in use")
def sweep_renews(s: Subject) -> Play:
    artifact = made()
    stored_before(s, artifact)
    with later(timedelta(days=20)):
        check_artifact(s, artifact)
    with later(timedelta(days=31)):
        yield lambda: function(SWEEP)
        yield None
        run_again_after_a_fault(s)
        check_artifact(s, artifact)
    sweep_on(s, timedelta(days=31))
    with later(timedelta(days=33)):
        check_artifact(s, artifact)


@scenario("SweepArtifacts", variant="of a removal")
def sweep_removal(s: Subject) -> Play:
    stored_before(s, made())
    ask_removal(s.team.id, s.user.id, by=None, now=clock.now())
    s.world.handed_over.clear()
    with later(in_hours(1)):
        yield lambda: function(SWEEP)
        yield None
        run_again_after_a_fault(s)
    assert artifacts_seen(s) is None


def removal_job(s: Subject) -> object:
    """Request the removal of two artifacts. Returns the payload of its job."""
    stored_before(s, made())
    stored_before(s, made(), f"{s.tag}01")
    ask_removal(s.team.id, s.user.id, by=None, now=clock.now())
    (_, job), *_ = s.world.handed_over
    s.world.handed_over.clear()
    return job


@scenario("RemoveArtifacts")
def remove_artifacts(s: Subject) -> Play:
    job = removal_job(s)
    yield lambda: function(REMOVE, job)
    yield None
    if s.disturbed:
        # The removal is recorded, so the sweep finishes what is left.
        with later(in_hours(1)):
            function(SWEEP)
    check_artifact(s, None)
    assert totals_of(s)[1] == 0 or s.disturbed


@scenario("RemoveArtifacts", variant="to make room")
def evict(s: Subject) -> Play:
    change_state(s.team.id, quota_bytes=10_000)
    with evicting(s):
        for number in range(3):
            stored_before(s, made(3_200), f"{s.tag}{number}")
        job = {"kind": "least_recently_used", "owner": s.team.id, "writer": None}
        s.world.handed_over.clear()
        yield lambda: function(REMOVE, job)
        yield None
        assert totals_of(s) == (6_400, 2)


@scenario("SweepExpiredKeys")
def remove_expired(s: Subject) -> Play:
    gone = expired_key(s)
    yield lambda: function("api_keys.sweep_expired_keys.handler")
    yield None
    check_metadata(gone, None)
    assert key_store.get(s.key.key_hash) is not None


@scenario("SweepDeletedUsers")
def sweep_users(s: Subject) -> Play:
    from larder.accounts.service import delete_user

    bob = member_of(s)
    key, token = keys.create_key(NewKey(user_id=bob.id, metadata=METADATA), now=clock.now())
    stored_by(s, bob, token)
    s.session(bob)
    delete_user(bob.id, now=clock.now())
    with later(in_hours(26)):
        yield lambda: function("accounts.sweep_deleted_users.handler")
        yield None
        run_again_after_a_fault(s, "accounts.sweep_deleted_users.handler")
    check_metadata(key.key_hash, None)
    assert role_of(s.team.id, bob.id) is None
    assert list(index.stored_by(bob.id)) == []
    assert accounts.list_sessions(bob.id) == []


@scenario("SweepDeletedTeams")
def sweep_teams(s: Subject) -> Play:
    stored_before(s, made())
    invited(s)
    teams.delete_team(s.team.id, by=None, now=clock.now())
    with later(in_hours(26)):
        yield lambda: function("teams.sweep_deleted_teams.handler")
        yield None
        run_again_after_a_fault(s, "teams.sweep_deleted_teams.handler")
    assert artifacts_seen(s) is None
    assert role_of(s.team.id, s.user.id) is None


def mail_job(s: Subject, kind: str, name: str = "ada", **more: object) -> dict[str, object]:
    return {
        "kind": kind,
        "email": s.email(name),
        "callback_url": "",
        "base_url": "https://cache.example.com",
        "request": {"method": "POST", "path": "/", "ip_address": None, "user_agent": None},
        **more,
    }


SEND = "accounts.send_account_email.handler"


def mail_to(address: str) -> int:
    """Messages in the outbox to an address."""
    from larder.mail.service import read_outbox

    found = read_outbox(limit=20, now=clock.now()).messages
    return sum(one.message.to == address for one in found)


def sending(s: Subject, **job: Any) -> Play:
    given = mail_job(s, user_id=s.user.id, new_email=s.user.email, **job)
    to = str(given["email"])
    yield lambda: function(SEND, given)
    yield None
    assert 1 <= mail_to(to) <= s.times_sent + 2


for _variant, _job in (
    ("", {"kind": "verify_email"}),
    ("of a reset", {"kind": "reset_password"}),
    ("of a new address", {"kind": "change_email", "name": "lovelace", "credentials": "0.0"}),
    ("of a changed address", {"kind": "email_changed", "name": "left", "changed_at_ms": 1_795_308_420_000}),
):
    scenario("SendAccountEmail", variant=_variant)(partial(sending, **_job))


@scenario("SendAccountEmail", variant="of an invitation")
def send_invitation(s: Subject) -> Play:
    invitation, _ = invited(s)
    job = mail_job(s, "team_invitation", email=invitation.email, team_id=s.team.id, invitation_id=invitation.id)
    yield lambda: function(SEND, job)
    yield None
    assert mail_to(invitation.email) >= 1


@scenario("SendAccountEmail", variant="by SES")
def send_by_ses(s: Subject) -> Play:
    s.world.option("email_sender", "larder@acme.example")
    s.world.mail.clear()
    try:
        yield lambda: function(SEND, mail_job(s, "verify_email"))
        yield None
        assert s.world.mail
    finally:
        s.world.option("email_sender", "")


# Runs ------------------------------------------------------------------------------------------------


@scenario("POST /v1/runs", variant="with inputs")
def report_run(s: Subject) -> Play:
    teams.change_team(s.team.id, teams.TeamChange(run_inputs=RunInputs.VALUES), by=None, now=clock.now())
    first = reports.report(reports.LIB)
    assert reports.send(s.send, first).status == 200
    body = reports.report(reports.LIB_2, ancestors=(reports.MAIN,))
    body["execution"]["startTime"] += 1
    place = f"{body['execution']['startTime']:012x}#{body['id']}"
    yield lambda: reports.send(s.send, body)
    run = read_run(s.team.id, place, now=clock.now())
    assert run is None or not run.has_inputs or run_storage.get(s.team.id, run) is not None, (
        "a run has inputs, and no object"
    )
    yield None
    run = read_run(s.team.id, place, now=clock.now())
    assert run is not None
    if run.explanation is not None:
        assert [cause["subject"] for cause in run.explanation["causes"]] == ["packages/lib/src/a.js"]


@scenario("GET /v1/runs/{runId}", variant="compared again")
def compare_again(s: Subject) -> Play:
    teams.change_team(s.team.id, teams.TeamChange(run_inputs=RunInputs.VALUES), by=None, now=clock.now())
    first, second = reports.report(reports.LIB), reports.report(reports.LIB_2)
    second["execution"]["startTime"] += 1
    for body in (first, second):
        assert reports.send(s.send, body).status == 200
    query = f"startedAt={second['execution']['startTime']}&against={first['id']}"
    yield lambda: s.send("GET", f"/v1/runs/{second['id']}?{query}")
    replies = yield None
    if replies[-1].status == 200:
        assert replies[-1].json["missing"] is not None or reports.causes(replies[-1])


# All other routes, with the requests of the catalogue ----------------------------------------------------

CHANGING: dict[str, dict[int, str]] = {
    "DELETE /v1/runs": {},
    "DELETE /v1/teams/{idOrSlug}/keys/{keyId}": {404: "key_not_found"},
    "DELETE /v1/teams/{idOrSlug}/rules/{ruleId}": {404: "rule_not_found"},
    "DELETE /v3/user/tokens/current": {401: "unauthorized"},
    "PATCH /v1/teams/{idOrSlug}/rules/{ruleId}": {},
    "PATCH /v2/teams/{idOrSlug}": {},
    "POST /api/auth/api-key/delete-all-expired-api-keys": {},
    "POST /api/auth/change-email": {},
    "POST /api/auth/confirm-email-change": {},
    "POST /api/auth/request-password-reset": {},
    "POST /api/auth/revoke-other-sessions": {},
    "POST /api/auth/revoke-sessions": {401: "unauthorized"},
    "POST /api/auth/send-verification-email": {},
    "POST /api/auth/sign-in/email": {},
    "POST /api/auth/turbo-login": {},
    "POST /api/auth/update-user": {},
    "POST /v1/runs": {},
    "POST /v1/teams": {409: "slug_taken"},
    "POST /v1/teams/{idOrSlug}/members": {},
    "POST /v2/teams/{idOrSlug}/members": {},
    "PUT /v1/artifacts/status": {},
    "PUT /v1/teams/{idOrSlug}/protection": {},
}
"""The routes that change something with one write, and `done_before` of each. The matrix checks that the store has
carried the write out. All other routes only read."""


def catalogued(s: Subject) -> Play:
    """Send the catalogue's request, with what it names in place. If it only reads, the next reply is the same."""
    s.prove_address()
    names = create_everything(s.user, s.team, password=FIRST, mark=s.tag, issuer=issuer_of(s))
    s.lose_events()
    request = valid(s.route, names)
    sender = Sender(
        {"key": names.key, "session": names.session, None: None}[request.by],
        slug=s.team.slug if request.for_team else None,
    )
    request = replace(request, headers={**request.headers, **s.from_its_address()})
    s.world.handed_over.clear()
    with (
        option_set(s, "trusted_origins", NAMES.trusted_origin, usually=""),
        option_set(s, "operator_emails", s.user.email, usually=""),
    ):
        yield lambda: request(sender)
        replies = yield None
        if s.route not in CHANGING:
            again = request(sender)
            # A window of the rate limit can end between the two.
            if 429 not in (replies[-1].status, again.status):
                assert (replies[-1].status, _shown_of(replies[-1])) == (
                    again.status, _shown_of(again),
                )  # fmt: skip


_MOVING = re.compile(rb'"(?:lastRequest|expiresAt)":[^,}]+')
"""What a request changes of the key that sends it, and when the token ends that it offers."""


def _shown_of(reply: Reply) -> bytes:
    return _MOVING.sub(b"", reply.body)


_PLAYED = {one.route for one in SCENARIOS if not one.variant} | {"$default"}
for _one in load_template(environ={}).routes:
    if _one.key not in _PLAYED:
        scenario(_one.key, done_before=CHANGING.get(_one.key))(catalogued)
