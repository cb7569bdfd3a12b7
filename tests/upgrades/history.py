"""The use of a deployment before an upgrade, and the requests before and after it.

`live` sends requests to the handlers as clients do, and stores every kind of item in docs/data-model.md. Add to it what
a new version stores. The questions are data and are recorded with their replies. A later version gets the same
questions with the same credentials.
"""

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from larder import clock
from larder.accounts.service import create_user
from larder.api_keys.keys import create_key
from larder.api_keys.models import FETCHES_ONLY, TRUST, Daily, RateLimit, Refill
from larder.api_keys.properties import NewKey
from larder.clock import to_ms
from larder.settings import settings
from larder.sso.memberships import map_group
from larder.teams import teams
from larder.teams.members import add_member
from larder.teams.models import CachingStatus, Role, RunInputs
from larder.teams.protection import ProtectionChange, change_protection
from larder.teams.state import change_state
from larder.teams.teams import TeamChange, create_team
from larder.trust.models import NewRule
from larder.trust.rules import create_rule
from tests.conftest import SetOption
from tests.direct_uploads import announce, offer, upload
from tests.functions.usage.reports import LIB, LIB_2, report
from tests.functions.usage.reports import send as send_report
from tests.invocations import handed_over
from tests.issuer import ORIGIN, Issuer, github_claims
from tests.mailbox import Mailbox
from tests.requests import Browser, Reply, Sender, deliver
from tests.sso.people import end_access
from tests.sso.providers import add_acme, link
from tests.trust.exchanging import exchange

PASSWORD = "correct horse battery staple"
TAG = "Tc0BmHvJYMIYJ62/zx87YqO0Flxk+5Ovip25NY825CQ="
SMALL, TAGGED, REPLACED, DIRECT, UNSETTLED, NEVER_UPLOADED, LEAKED, DELETED = (f"{n:016x}" for n in range(1, 9))
OPTIONS = {"inline_download_bytes": 100, "http_rate_limit_enabled": "true", "over_quota": "refuse", "scrypt_cost": 1024}
"""Options of the deployment: artifacts of more than 100 bytes count as large, and password hashes are quick. A read
changes nothing, because only `evict` notes the last use.
"""
LARGE = bytes(range(200))

Question = dict[str, Any]
"""`as` (a name in the credentials, or None), `method`, `path`, and optionally `query` and `json`."""
Credentials = dict[str, dict[str, str]]
"""For each name, the headers with the credentials."""


@dataclass(frozen=True)
class Past:
    """Credentials, questions, links in mail that are not used yet, and pending removals."""

    credentials: Credentials
    questions: list[Question]
    links: dict[str, str]
    to_be_removed: list[str]
    """Hashes of artifacts with a requested removal."""


def live(option: SetOption, mailbox: Mailbox) -> Past:
    for name, value in OPTIONS.items():
        option(name, value)
    now = clock.now()
    ada, ada_in = _signed_up("ada", mailbox)
    _, bob_in = _signed_up("bob", mailbox)
    carl, carl_in = _signed_up("carl", mailbox)
    vera = create_user("vera@acme.example", "Vera", now=now)
    acme = create_team("Acme", "acme", owner_user_id=ada, now=now)
    add_member(acme.id, vera.id, Role.VIEWER, now=now)
    add_member(acme.id, carl, Role.MEMBER, now=now)
    change_state(acme.id, quota_bytes=1_000_000)
    create_team("Paused", "paused", owner_user_id=ada, now=now)
    change_state(create_team("Idle", "idle", owner_user_id=ada, now=now).id, caching=CachingStatus.PAUSED)
    other = teams.create_team("Made", "made", owner_user_id=ada, limited=True, now=now)
    teams.change_team(other.id, TeamChange(slug="renamed"), by=None, now=now)
    safe = create_team("Safe", "safe", owner_user_id=ada, now=now)
    change_protection(safe.id, ProtectionChange(protected=True, keep_stored=True), by=None)
    gone = create_team("Gone", "gone", owner_user_id=ada, now=now)
    teams.delete_team(gone.id, by=None, now=now)
    keys = {
        "ci": NewKey(user_id=ada, team_id=acme.id, name="ci", prefix="ci_"),
        "personal": NewKey(user_id=ada, metadata={"repo": "web"}, expires_in_s=31_536_000),
        "counted": NewKey(user_id=ada, remaining=5, refill=Refill(interval_ms=86_400_000, amount=5)),
        "limited": NewKey(user_id=ada, rate_limit=RateLimit(enabled=True, window_ms=3_600_000, max_requests=50)),
        "reading": NewKey(user_id=vera.id, permissions={"artifacts": ("read",)}),
        "expired": NewKey(user_id=ada, expires_in_s=1),
        "leaked": NewKey(user_id=ada, team_id=acme.id),
        "managing": NewKey(user_id=ada, team_id=acme.id, permissions={"artifacts": ("manage",)}),
        "inviting": NewKey(user_id=ada, permissions={"teams": ("read", "write")}),
        "main": NewKey(user_id=ada, team_id=safe.id, permissions={"artifacts": ("read", "write", TRUST)}),
        "pull request": NewKey(user_id=ada, team_id=safe.id),
        "of the team": NewKey(user_id=None, team_id=acme.id, made_by=carl, name="shared"),
        "public": NewKey(
            user_id=None,
            team_id=acme.id,
            permissions=FETCHES_ONLY,
            daily=Daily(max_requests=1_000, max_bytes=1_000_000),
        ),
    }
    credentials = {"ada": _cookies(ada_in), "bob": _cookies(bob_in)}
    ids = {}
    for name, new in keys.items():
        # The key that expires has done so, however fast this is.
        created_at = now - timedelta(minutes=1) if name == "expired" else now
        made, token = create_key(new, now=created_at)
        ids[name] = made.id
        credentials[name] = {"authorization": f"Bearer {token}"}
    dana = create_user("dana@company.example", "Dana", email_verified=True, now=now)
    company = add_acme(domains=("company.example",))
    link(dana, company)
    map_group(company.id, acme.id, "engineering", Role.MEMBER)
    end_access(dana, at=now + timedelta(days=30))
    credentials["job"] = {"authorization": f"Bearer {_exchanged(acme.id)}"}
    change_state(ada, quota_bytes=1)
    _be_refused(_sender(credentials["personal"]))
    change_state(ada, quota_bytes=500_000)
    _build(_sender(credentials["ci"]))
    _tidy_up(_sender(credentials["leaked"]), _sender(credentials["managing"]), ids["leaked"])
    _build_in_scopes(_sender(credentials["main"]), _sender(credentials["pull request"]))
    kept_inputs = TeamChange(run_inputs=RunInputs.VALUES, build_hour_cents=1_200)
    teams.change_team(acme.id, kept_inputs, by=None, now=now)
    run_ids = _report_runs(_sender(credentials["ci"]))
    invitation = _invite(_sender(credentials["inviting"]), mailbox)
    for name in ("personal", "counted", "limited"):
        _asked({"as": name, "method": "GET", "path": "/v8/artifacts/status"}, credentials)
    assert carl_in.post("/delete-user", {"password": PASSWORD}).status == 200
    Browser().post("/request-password-reset", {"email": "ada@acme.example", "redirectTo": "/reset"})
    links = {"reset": mailbox.link(), "invitation": invitation}
    assert bob_in.post("/change-email", {"newEmail": "robert@acme.example"}).status == 200
    links["change email"] = mailbox.link()
    return Past(credentials, _questions(ids, run_ids), links, [LEAKED])


def _signed_up(name: str, mailbox: Mailbox) -> tuple[str, Browser]:
    """Sign up and verify the address. Return the user id and the browser."""
    browser = Browser()
    person = {"name": name.title(), "email": f"{name}@acme.example", "password": PASSWORD}
    reply = browser.post("/sign-up/email", person)
    assert reply.status == 200, reply
    assert browser.post("/send-verification-email", {"email": person["email"]}).status == 200
    path, _, query = mailbox.link().partition("?")
    assert deliver("GET", path, query, [], b"").status in (200, 302)
    return str(reply.json["user"]["id"]), browser


def _cookies(browser: Browser) -> dict[str, str]:
    return {"cookie": "; ".join(f"{name}={value}" for name, value in browser.cookies.items())}


def _sender(carried: dict[str, str]) -> Sender:
    return Sender(None, authorization=carried["authorization"])


def _tidy_up(leaked: Sender, manage: Sender, leaked_id: str) -> None:
    """Delete one artifact, and request the removal of a leaked key's artifacts without performing it."""
    for hash in (LEAKED, DELETED):
        assert leaked("PUT", f"/v8/artifacts/{hash}", body=b"suspect").status == 202
    assert manage("DELETE", f"/v1/artifacts/{DELETED}").status == 200
    with handed_over(settings().removal_function):
        remove = Sender(None, authorization=manage.authorization, query=f"writer={leaked_id}")
        assert remove("DELETE", "/v1/artifacts").status == 202


def _invite(send: Sender, mailbox: Mailbox) -> str:
    """Invite a user without an account. Return the link in the mail."""
    eve = {"email": "eve@acme.example", "role": "DEVELOPER"}
    assert send("POST", "/v2/teams/acme/members", json_body=eve).status == 200
    return mailbox.link()


def _exchanged(team_id: str) -> str:
    """Add rules to the team, and exchange the id token of a job. Return the token of the job."""
    pinned = {"repository_id": "74", "repository_owner_id": "65"}
    for new in (
        NewRule(provider="github", pinned=pinned, lifetime_s=21_600),
        NewRule(provider="gitlab", repository="acme/docs"),
    ):
        create_rule(team_id, new, by=None, origin=ORIGIN, now=clock.now())
    issuer = Issuer()
    issuer.publish()
    return str(exchange(issuer.mint(github_claims())).json["access_token"])


def _build(send: Sender) -> None:
    """Uploads of every kind, and usage events of a build."""
    headers = {"x-artifact-duration": "1234", "x-artifact-sha": "1f0bd0a4", "x-artifact-client-ci": "CI"}
    assert send("PUT", f"/v8/artifacts/{SMALL}", body=b"small", headers=headers).status == 202
    signed = {**headers, "x-artifact-tag": TAG, "x-artifact-dirty-hash": "0a"}
    assert send("PUT", f"/v8/artifacts/{TAGGED}", body=LARGE, headers=signed).status == 202
    for body in (b"before", b"after"):
        assert send("PUT", f"/v8/artifacts/{REPLACED}", body=body).status == 202
    announce(upload(send, DIRECT, LARGE))
    upload(send, UNSETTLED, LARGE + b"unsettled")
    offer(send, NEVER_UPLOADED)
    session = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"
    events = [
        {"sessionId": session, "source": source, "event": event, "hash": SMALL, "duration": 1234}
        for source in ("LOCAL", "REMOTE")
        for event in ("HIT", "MISS")
    ]
    assert send("POST", "/v8/artifacts/events", json_body=events).status == 200


def _be_refused(send: Sender) -> None:
    """An upload that is noted for the explanation of later runs."""
    assert send("PUT", f"/v8/artifacts/{NEVER_UPLOADED}", body=b"refused").status == 403


def _report_runs(send: Sender) -> dict[str, int]:
    """A run with inputs, one that is compared with it, and one with a known hash. Returns their starts by their ids."""
    started = {}
    for number, task in enumerate((LIB, LIB_2, LIB)):
        at = to_ms(clock.now()) - 10_000 + 1_000 * number
        body = report(task, execution={"startTime": at, "endTime": at + 500, "exitCode": 0})
        reply = send_report(send, body)
        assert reply.status == 200, reply
        assert number < 2 or reply.json["causes"]["sameHash"], reply
        assert number != 1 or reply.json["causes"]["causes"], reply
        started[str(body["id"])] = at
    return started


def _build_in_scopes(main: Sender, pr: Sender) -> None:
    """One hash in an own scope alone, one in both, and another upload of that, which is not stored."""
    for send, hash, body in (
        (pr, SMALL, b"own"),
        (pr, TAGGED, b"own, too"),
        (main, TAGGED, b"shared"),
        (main, TAGGED, b"another"),
    ):
        assert send("PUT", f"/v8/artifacts/{hash}", body=body).status == 202
    upload(pr, UNSETTLED, LARGE)


def _questions(ids: dict[str, str], run_ids: dict[str, int]) -> list[Question]:
    """Every endpoint that reads, in this order, before the upgrade and after it."""
    today = clock.now().date().isoformat()
    cache: list[Question] = [
        {"as": "ci", "method": "GET", "path": "/v8/artifacts/status"},
        {"as": "ci", "method": "GET", "path": "/v8/artifacts/status", "query": "slug=acme"},
        {"as": "personal", "method": "GET", "path": "/v8/artifacts/status", "query": "slug=idle"},
        *(
            {"as": "ci", "method": method, "path": f"/v8/artifacts/{hash}"}
            for hash in (SMALL, TAGGED, REPLACED, DIRECT, UNSETTLED, NEVER_UPLOADED)
            for method in ("GET", "HEAD")
        ),
        *(
            {"as": name, "method": "GET", "path": f"/v8/artifacts/{hash}"}
            for name in ("main", "pull request")
            for hash in (SMALL, TAGGED, UNSETTLED)
        ),
        {"as": "inviting", "method": "GET", "path": "/v1/teams/safe/protection"},
        {
            "as": "reading",
            "method": "POST",
            "path": "/v8/artifacts",
            "query": "slug=acme",
            "json": {"hashes": [SMALL, TAGGED, REPLACED, DIRECT, UNSETTLED, NEVER_UPLOADED]},
        },
        {"as": "managing", "method": "GET", "path": "/v1/artifacts"},
        {"as": "managing", "method": "GET", "path": f"/v1/artifacts/{TAGGED}"},
        {"as": "expired", "method": "GET", "path": "/v8/artifacts/status"},
        {"as": "counted", "method": "GET", "path": "/v8/artifacts/status"},
        {"as": "ci", "method": "GET", "path": "/v1/usage", "query": f"from={today}&to={today}"},
        {"as": "ci", "method": "GET", "path": "/v1/runs", "query": f"from={today}&to={today}"},
        *(
            {"as": "ci", "method": "GET", "path": f"/v1/runs/{id}", "query": f"startedAt={at}{asked}"}
            for id, at in run_ids.items()
            # Compared again, from the objects with the inputs.
            for asked in ("", "&against=ci")
        ),
        {"as": "ci", "method": "GET", "path": "/v1/tasks/history", "query": "package=lib&task=build"},
        {"as": "job", "method": "GET", "path": "/v8/artifacts/status"},
        {"as": "job", "method": "GET", "path": f"/v8/artifacts/{SMALL}"},
        *(
            {"as": name, "method": "GET", "path": f"/v8/artifacts/{asked}"}
            for name in ("of the team", "public")
            for asked in ("status", SMALL)
        ),
        {"as": "inviting", "method": "GET", "path": "/v1/teams/acme/rules"},
        {"as": "personal", "method": "GET", "path": "/v2/user"},
        {"as": "ci", "method": "GET", "path": "/v5/user/tokens/current"},
        {"as": "personal", "method": "GET", "path": "/v2/teams"},
        {"as": "reading", "method": "GET", "path": "/v2/teams/acme"},
        {"as": "personal", "method": "GET", "path": "/v2/teams/made"},
        {"as": "personal", "method": "GET", "path": "/v2/teams/gone"},
        {"as": "inviting", "method": "GET", "path": "/v3/teams/acme/members"},
    ]
    people: list[Question] = [
        {"as": "ada", "method": "GET", "path": "/api/auth/get-session"},
        {"as": "ada", "method": "GET", "path": "/api/auth/list-sessions"},
        {"as": "bob", "method": "GET", "path": "/api/auth/get-session"},
        {"as": "ada", "method": "GET", "path": "/api/auth/api-key/list"},
        *(
            {"as": "ada", "method": "GET", "path": "/api/auth/api-key/get", "query": f"id={ids[name]}"}
            for name in ("ci", "counted", "limited", "expired")
        ),
        {
            "as": None,
            "method": "POST",
            "path": "/api/auth/sign-in/email",
            "json": {"email": "Ada@Acme.example", "password": PASSWORD},
        },
    ]
    return [*cache, *people]


def answered(questions: list[Question], credentials: Credentials) -> list[dict[str, Any]]:
    """The replies as comparable data, without values that change with the time or the signature."""
    return [_shown(_asked(question, credentials)) for question in questions]


def _asked(question: Question, credentials: Credentials) -> Reply:
    return _send(question, credentials[question["as"]] if question["as"] else {})


def _send(question: Question, carried: dict[str, str]) -> Reply:
    body = json.dumps(question["json"]).encode() if "json" in question else b""
    headers = {"x-forwarded-proto": "https", "origin": "https://cache.example.com", **carried}
    if body:
        headers |= {"content-type": "application/json", "content-length": str(len(body))}
    return deliver(question["method"], question["path"], question.get("query", ""), list(headers.items()), body)


COMPARED_HEADERS = ("x-artifact-duration", "x-artifact-tag", "x-artifact-sha", "content-length")


def _shown(reply: Reply) -> dict[str, Any]:
    shown: dict[str, Any] = {"status": reply.status}
    shown["headers"] = {name: reply.headers[name] for name in COMPARED_HEADERS if name in reply.headers}
    if "location" in reply.headers:
        shown["headers"]["location"] = reply.headers["location"].split("?")[0]
    if reply.headers.get("content-type") == "application/json":
        shown["json"] = reply.json
    elif reply.body:
        shown["body"] = reply.body.hex()
    return shown
