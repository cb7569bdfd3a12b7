"""The requests of the fault oracle: every operation of the catalogue, variants with more calls, and every function
without a route. FAMILIES names where the end differs, and REFUSALS what a repeated request can get.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import fields, replace
from datetime import timedelta
from functools import cache, partial
from typing import Any, NamedTuple
from urllib.parse import urlencode

from larder import aws, clock
from larder.accounts import link_tokens
from larder.accounts.models import User
from larder.accounts.service import create_user, delete_user
from larder.accounts.sessions import start_session
from larder.api_keys.keys import create_key
from larder.api_keys.models import ARTIFACT_ACTIONS, TRUST, ApiKey, RateLimit, Refill
from larder.api_keys.properties import NewKey
from larder.artifacts.removals import ask_removal
from larder.invitations.models import Invitee
from larder.invitations.service import create_invitations
from larder.settings import region, settings
from larder.sso import repository as sso
from larder.sso.service import add_provider
from larder.teams.members import add_member
from larder.teams.models import Role, RunInputs, Team
from larder.teams.state import change_state
from larder.teams.teams import TeamChange, change_team, create_team, delete_team
from tests.catalogue import NAMES, Names, operations, valid
from tests.catalogue import Request as Given
from tests.conftest import SetOption
from tests.default_template import template
from tests.direct_uploads import upload, versions_of
from tests.everything import create_everything
from tests.functions.usage import reports
from tests.moto_stores import Stores
from tests.proofs.fault_oracle import Request, World, created, function
from tests.requests import Browser, Sender
from tests.sso.conftest import FROM_PAGE
from tests.sso.conftest import ORIGIN as LOOPBACK
from tests.sso.hostile_provider import serving_provider
from tests.sso.providers import SECRET, add_acme, link

_NAMES = {field.name for field in fields(Names)}
_OTHERS = {field.name for field in fields(Given)}


@cache
def _everything() -> tuple[Stores, Names, User, Team]:
    ada = create_user("ada@example.com", "Ada", password=NAMES.password, email_verified=True, now=clock.now())
    acme = create_team("Acme", "acme", owner_user_id=ada.id, now=clock.now())
    names = create_everything(ada, acme, password=NAMES.password)
    return Stores(region()), names, ada, acme


class Scene:
    """Everything that a request of the catalogue can name, and further data of a case."""

    def __init__(self, world: World, option: SetOption, stack: ExitStack) -> None:
        self.world, self.option, self.stack = world, option, stack
        stores, self.names, self.ada, self.acme = _everything()
        stores.put_back()
        self.send = Sender(self.names.key, slug="acme")

    def ask(self, operation: str, **changed: Any) -> Request:
        """The request of the catalogue, with other names or fields."""
        names = replace(self.names, **{name: value for name, value in changed.items() if name in _NAMES})
        request = replace(valid(operation, names), **{n: v for n, v in changed.items() if n in _OTHERS})
        token = {"key": names.key, "session": names.session, None: None}[request.by]
        sender = Sender(token, slug="acme" if request.for_team else None)
        self.names = names
        return lambda: request(sender)

    def key(self, **more: Any) -> tuple[ApiKey, str]:
        return create_key(NewKey(**{"user_id": self.ada.id, **more}), now=clock.now())

    def user(self, name: str, role: Role | None = None) -> User:
        user = create_user(f"{name}@example.com", name, password=NAMES.password, email_verified=True, now=clock.now())
        if role is not None:
            add_member(self.acme.id, user.id, role, now=clock.now())
        return user

    def store(self, hash: str, size: int) -> None:
        assert self.send("PUT", f"/v8/artifacts/{hash}", body=b"x" * size).status == 202
        self.later(seconds=1)  # uploads of the same millisecond come in any order

    def arrive(self, hash: str = "new", size: int = 2_000) -> dict[str, Any]:
        """Upload directly. Returns the event of S3, which gets lost."""
        self.later(seconds=1)
        key = upload(self.send, hash, b"y" * size)
        self.names = replace(self.names, hash=hash)
        return created(key, size, versions_of(key)[0].id)

    def later(self, **time: float) -> None:
        self.world.clock.shift(timedelta(**time))

    def reads(self, name: str) -> dict[str, Request]:
        """What a client can read in the domain of an operation or function."""
        handlers = {route.key: route.function.handler for route in template().routes}
        domain = {**handlers, **HANDLERS}[name].partition(".")[0]
        found = [
            key
            for key, handler in handlers.items()
            if handler.startswith(f"{domain}.") and key.startswith(("GET", "HEAD"))
        ]
        return {key: self.ask(key) for key in found if key not in _NOT_READS}


_NOT_READS = {
    *(
        "GET /api/auth/verify-email",
        "GET /api/auth/callback/{id}",
        "GET /registration/verify",
        "GET /api/auth/get-session",
    ),
    *("GET /v1/audit", "GET /v1/usage", "GET /v1/usage/by", "GET /v1/storage", "GET /v1/artifacts/removals"),
    "GET /v1/usage/metrics",
}
"""They change something, or show figures and the audit, which the end is compared for."""


class Case(NamedTuple):
    """A request. `begin` makes what it needs."""

    name: str
    variant: str
    begin: Callable[[Scene], Request]

    def __str__(self) -> str:
        return f"{self.name} ({self.variant})" if self.variant else self.name


Begin = Callable[[Scene], Request]
CASES: list[Case] = []


def case(name: str, variant: str = "") -> Callable[[Begin], Begin]:
    def add(begin: Begin) -> Begin:
        CASES.append(Case(name, variant, begin))
        return begin

    return add


def _catalogued(operation: str) -> Begin:
    changed = {
        "POST /api/auth/sign-up/email": {"email": "eve@example.com"},
        "POST /v1/teams/{idOrSlug}/members/teams/join": {"team": "other-x"},
        "PUT /v8/artifacts/{hash}": {"hash": "new"},
        "OPTIONS /v8/artifacts/{hash}": {"hash": "new"},
    }
    return lambda s: s.ask(operation, **changed.get(operation, {}))


for _operation in operations():
    if not _operation.startswith("OPTIONS") or "{hash}" in _operation:
        case(_operation)(_catalogued(_operation))

# Artifacts ----------------------------------------------------------------------------------------------------------

PUT, GET, HEAD = (f"{method} /v8/artifacts/{{hash}}" for method in ("PUT", "GET", "HEAD"))
ARRIVED = "of an upload that has just arrived"


@case(PUT, "that replaces another")
def _replacing(s: Scene) -> Request:
    return s.ask(PUT, body=b"x" * 40_000)


@case(PUT, "refused")
def _past_quota(s: Scene) -> Request:
    change_state(s.acme.id, quota_bytes=100)
    s.option("over_quota", "refuse")
    return s.ask(PUT, body=b"x" * 3_000, hash="new")


@case(PUT, "that makes room")
def _making_room(s: Scene) -> Request:
    change_state(s.acme.id, quota_bytes=10_000)
    s.option("over_quota", "evict")
    s.store("old", 4_500)
    s.store("older", 4_500)
    return s.ask(PUT, body=b"x" * 4_000, hash="new")


def _of_size(operation: str, size: int, s: Scene) -> Request:
    s.store("new", size)
    return s.ask(operation, hash="new")


def _known(operation: str, s: Scene) -> Request:
    """Two minutes after a request of the same key in the same instance."""

    def warm() -> None:
        assert s.send("GET", "/v8/artifacts/status").status == 200
        s.later(minutes=2)

    s.world.warm = warm
    return s.ask(operation)


def _arrived(operation: str, s: Scene) -> Request:
    s.arrive()
    return s.ask(operation)


def _evicting(operation: str, s: Scene) -> Request:
    s.option("over_quota", "evict")
    s.later(days=2)
    return s.ask(operation)


def _edge(operation: str, s: Scene) -> Request:
    s.option("edge_url", "https://edge.example.com")
    secret = '{"current": "the-signing-secret-of-the-tests", "previous": "", "edge": {"id": "ab", "key": "%s"}}' % (
        "0" * 64
    )
    aws.write_secret(settings().signing_secret, secret)
    s.store("big", 300_000)
    return s.ask(operation, hash="big")


case(GET, "next to the index")(partial(_of_size, GET, 3_000))
case(GET, "by redirect")(partial(_of_size, GET, 300_000))
for _operation in (GET, HEAD, "GET /v8/artifacts/status"):
    case(_operation, "with a known key")(partial(_known, _operation))
for _operation in (GET, HEAD, "POST /v8/artifacts"):
    case(_operation, ARRIVED)(partial(_arrived, _operation))
case(GET, "that records a use")(partial(_evicting, GET))
for _operation in (GET, "OPTIONS /v8/artifacts/{hash}"):
    case(_operation, "with the edge")(partial(_edge, _operation))


@case("DELETE /v1/artifacts/{hash}", "with an open upload")
def _offered(s: Scene) -> Request:
    s.ask("OPTIONS /v8/artifacts/{hash}")()
    return s.ask("DELETE /v1/artifacts/{hash}")


@case("DELETE /v1/artifacts", "of a user")
def _of_user(s: Scene) -> Request:
    return s.ask("DELETE /v1/artifacts", query=f"writer={s.ada.id}")


# Keys ---------------------------------------------------------------------------------------------------------------

KEY = "POST /api/auth/api-key"


def _verifying(s: Scene, *, hours: float = 0, **key: Any) -> Request:
    _, token = s.key(metadata={"repo": "web"}, **key)
    s.later(hours=hours)
    return s.ask(f"{KEY}/verify", json={"key": token})


_VERIFIED: dict[str, dict[str, Any]] = {
    "with an allowance": {"remaining": 50},
    "the last use": {"remaining": 1},
    "a refill is due": {"remaining": 1, "refill": Refill(interval_ms=3_600_000, amount=10), "hours": 1.5},
    "with a rate limit": {"rate_limit": RateLimit(enabled=True, window_ms=3_600_000, max_requests=20)},
}
for _variant, _key in _VERIFIED.items():
    case(f"{KEY}/verify", _variant)(partial(_verifying, **_key))


@case(f"{KEY}/create", "the first trusted one")
def _trusted(s: Scene) -> Request:
    team = create_team("New", "fresh", owner_user_id=s.ada.id, now=clock.now())
    body = {"name": "new", "teamId": team.id, "permissions": {"artifacts": [*ARTIFACT_ACTIONS[:2], TRUST]}}
    return s.ask(f"{KEY}/create", json=body)


def _rotating(s: Scene, **body: Any) -> Request:
    team = s.acme.id if body else None
    old, _ = s.key(name="old", team_id=team, metadata={"repo": "web"})
    return s.ask(f"{KEY}/create", json={"name": "new", "replaces": old.id, **body})


case(f"{KEY}/create", "that replaces another")(_rotating)
case(f"{KEY}/create", "of the team, in place of a member's")(
    lambda s: _rotating(s, configId="team", organizationId=s.acme.id)
)


@case(f"{KEY}/create", "of the team")
def _team_key(s: Scene) -> Request:
    return s.ask(
        f"{KEY}/create",
        json={"name": "new", "configId": "team", "organizationId": s.acme.id, "metadata": {"repo": "web"}},
    )


@case(f"{KEY}/delete", "of the team")
def _delete_team_key(s: Scene) -> Request:
    made = _team_key(s)().json
    return s.ask(f"{KEY}/delete", json={"keyId": made["id"], "configId": "team"})


# Users --------------------------------------------------------------------------------------------------------------


@case("POST /api/auth/sign-up/email", "with verification")
def _verified_sign_up(s: Scene) -> Request:
    s.option("require_email_verification", "true")
    return s.ask("POST /api/auth/sign-up/email", email="eve@example.com")


@case("GET /api/auth/get-session", "that extends the session")
def _extending(s: Scene) -> Request:
    s.later(days=2)
    return s.ask("GET /api/auth/get-session")


@case("GET /api/auth/verify-email", "of a new address")
def _new_address(s: Scene) -> Request:
    token = link_tokens.issue_verification_token(s.ada, new_email=s.names.new_email, now=clock.now())
    return s.ask("GET /api/auth/verify-email", verification_token=token)


@case("POST /api/auth/change-password", "alone")
def _password_alone(s: Scene) -> Request:
    body = {"newPassword": "another correct horse", "currentPassword": NAMES.password}
    return s.ask("POST /api/auth/change-password", json=body)


@case("POST /api/auth/unlink-account", "one of several")
def _unlinking(s: Scene) -> Request:
    link(s.ada, add_acme(id="other", domains=()), "other")
    return s.ask("POST /api/auth/unlink-account")


@case("POST /api/auth/sign-in/email", "with a wrong password")
def _wrong_password(s: Scene) -> Request:
    return s.ask("POST /api/auth/sign-in/email", password="not the password")


@case("DELETE /v3/user/tokens/current", "a session")
def _token_of_session(s: Scene) -> Request:
    return s.ask("DELETE /v3/user/tokens/current", by="session")


def _at_provider(s: Scene, *, known: bool) -> Request:
    """The callback of a sign-in with a provider."""
    s.option("base_url", LOOPBACK)
    provider = s.stack.enter_context(serving_provider())
    reply, given = provider.token_reply, dict[str, Any]()
    # Each run starts before the provider has given the token of the code.
    provider.token_reply = lambda form, headers: given.setdefault(form["code"], reply(form, headers))  # type: ignore[method-assign]
    provider.person |= {"sub": "person", "email": "person@company.example"}
    added = add_provider(provider.settings(id="company", domains=("company.example",)), SECRET)
    assert sso.claim_fetch(added, now=clock.now(), until=clock.now())
    sso.store_keys(added, provider.jwks()["keys"], now=clock.now(), until=clock.now() + timedelta(hours=1))
    if known:
        stranger = create_user("person@company.example", "X", password=NAMES.password, now=clock.now())
        s.key(user_id=stranger.id)
    browser = Browser()
    started = browser.post("/sign-in/social", {"provider": "company", "callbackURL": "/console"}, headers=FROM_PAGE)
    query = urlencode(provider.authorize(started.json["url"]))
    cookies = dict(browser.cookies)
    return lambda: Browser(cookies=dict(cookies)).get(f"/callback/company?{query}", headers=FROM_PAGE)


case("GET /api/auth/callback/{id}", "that signs in")(partial(_at_provider, known=False))
case("GET /api/auth/callback/{id}", "of an account that a stranger made")(partial(_at_provider, known=True))

# Teams and runs -----------------------------------------------------------------------------------------------------


@case("DELETE /v1/teams/{idOrSlug}/members/{uid}", "an invitation")
def _withdrawing(s: Scene) -> Request:
    invitee = Invitee(email="carol@example.com", address="carol@example.com", role=Role.MEMBER)
    (invitation,) = create_invitations(s.acme.id, [invitee], by=None, now=clock.now())
    return s.ask("DELETE /v1/teams/{idOrSlug}/members/{uid}", member=invitation.id)


@case("POST /v1/teams/{idOrSlug}/rules", "the first")
def _first_rule(s: Scene) -> Request:
    create_team("New", "fresh", owner_user_id=s.ada.id, now=clock.now())
    return s.ask("POST /v1/teams/{idOrSlug}/rules", team="fresh")


@case("POST /login/oauth/token/revoke", "of a job")
def _revoking(s: Scene) -> Request:
    token = s.ask("POST /login/oauth/token")().json["access_token"]
    return s.ask("POST /login/oauth/token/revoke", ci_token=token)


def _run_reported(s: Scene, *tasks: Any, **more: Any) -> dict[str, Any]:
    change_team(s.acme.id, TeamChange(run_inputs=RunInputs.VALUES), by=None, now=clock.now())
    assert reports.send(s.send, reports.report(reports.LIB, id="first")).status == 200
    s.later(seconds=10)
    return reports.report(reports.LIB_2, ancestors=(reports.MAIN,), id="second")


@case("POST /v1/runs", "with inputs")
def _with_inputs(s: Scene) -> Request:
    body = _run_reported(s)
    return lambda: reports.send(s.send, body)


@case("GET /v1/runs/{runId}", "compared again")
def _compared(s: Scene) -> Request:
    body = _run_reported(s)
    assert reports.send(s.send, body).status == 200
    query = f"startedAt={body['execution']['startTime']}&against=first"
    return s.ask("GET /v1/runs/{runId}", run="second", query=query)


# Functions without a route --------------------------------------------------------------------------------------------

HANDLERS = {one.logical_id: one.handler for one in template().functions}


def _function(name: str, variant: str = "") -> Callable[[Callable[[Scene], Any]], None]:
    """The function gets the event that `begin` returns."""

    def add(begin: Callable[[Scene], Any]) -> None:
        case(name, variant)(lambda s: partial(function, HANDLERS[name], begin(s)))

    return add


_function("CommitUpload")(Scene.arrive)


@_function("CommitUpload", "that replaces another")
def _commit_in_place(s: Scene) -> Any:
    s.store("new", 3_000)
    return s.arrive()


@_function("CommitUpload", "of an earlier upload than the published one")
def _commit_overtaken(s: Scene) -> Any:
    earlier = s.arrive(size=1_000)
    s.later(seconds=1)
    function(HANDLERS["CommitUpload"], s.arrive())
    return earlier


@_function("CommitUpload", "of an artifact deleted meanwhile")
def _commit_deleted(s: Scene) -> Any:
    event = s.arrive()
    assert s.ask("DELETE /v1/artifacts/{hash}")().status == 200
    return event


@_function("CommitUpload", "over the quota")
def _commit_past_quota(s: Scene) -> Any:
    event = s.arrive()
    s.option("over_quota", "refuse")
    change_state(s.acme.id, quota_bytes=1_000)
    return event


@_function("SweepArtifacts")
def _sweep(s: Scene) -> None:
    for _ in range(2):
        s.store("replaced", 3_000)
    s.ask("OPTIONS /v8/artifacts/{hash}", hash="gone")()
    s.arrive("came")
    s.later(hours=25)


@_function("SweepArtifacts", "of expired artifacts")
def _sweep_expired(s: Scene) -> None:
    s.later(days=31)


@_function("SweepArtifacts", "of an artifact in use")
def _sweep_used(s: Scene) -> None:
    s.store("used", 3_000)
    s.later(days=20)
    assert s.ask(GET, hash="used")().status == 200
    s.later(days=11)


@_function("SweepArtifacts", "of a removal")
def _sweep_removal(s: Scene) -> None:
    ask_removal(s.acme.id, s.ada.id, by=None, now=clock.now())
    s.later(hours=1)


@_function("RemoveArtifacts")
def _remove(s: Scene) -> Any:
    s.store("other", 3_000)
    ask_removal(s.acme.id, s.ada.id, by=None, now=clock.now())
    s.world.jobs.clear()
    return {"kind": "removal", "owner": s.acme.id, "target": s.ada.id}


@_function("RemoveArtifacts", "to make room")
def _evict(s: Scene) -> Any:
    change_state(s.acme.id, quota_bytes=10_000)
    s.option("over_quota", "evict")
    for number in range(3):
        s.store(f"old{number}", 3_200)
        s.later(seconds=1)
    return {"kind": "least_recently_used", "owner": s.acme.id, "writer": None}


@_function("SweepExpiredKeys")
def _expired(s: Scene) -> None:
    s.key(expires_in_s=1, metadata={"repo": "web"})
    s.later(seconds=2)


@_function("SweepDeletedUsers")
def _deleted_user(s: Scene) -> None:
    bob = s.user("eve", Role.OWNER)
    _, token = s.key(user_id=bob.id, metadata={"repo": "web"})
    assert Sender(token)("PUT", "/v8/artifacts/own", body=b"x" * 3_000).status == 202
    start_session(bob, now=clock.now())
    delete_user(bob.id, now=clock.now())
    s.later(hours=26)


@_function("SweepDeletedTeams")
def _deleted_team(s: Scene) -> None:
    delete_team(s.acme.id, by=None, now=clock.now())
    s.later(hours=26)


def _mail(kind: str, s: Scene, **more: Any) -> Any:
    request = {"method": "POST", "path": "/", "ip_address": None, "user_agent": None}
    job = {"kind": kind, "email": s.ada.email, "callback_url": "", "base_url": LOOPBACK, "request": request}
    return {
        **job,
        "user_id": s.ada.id,
        "new_email": s.ada.email,
        "credentials": "0.0",
        "changed_at_ms": 1_795_000_000_000,
        **more,
    }


for _kind in ("verify_email", "reset_password", "change_email", "email_changed"):
    _function("SendAccountEmail", _kind)(partial(_mail, _kind))


@_function("SendAccountEmail", "team_invitation")
def _mail_invitation(s: Scene) -> Any:
    invitee = Invitee(email="carol@example.com", address="carol@example.com", role=Role.MEMBER)
    (invitation,) = create_invitations(s.acme.id, [invitee], by=None, now=clock.now())
    return _mail("team_invitation", s, email=invitee.email, team_id=s.acme.id, invitation_id=invitation.id)


@_function("SendAccountEmail", "by SES")
def _mail_by_ses(s: Scene) -> Any:
    s.option("email_sender", "larder@acme.example")
    return _mail("reset_password", s)
