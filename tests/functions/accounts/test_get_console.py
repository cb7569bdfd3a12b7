"""GET /api/auth/console"""

from dataclasses import replace
from datetime import timedelta

from larder import clock
from larder.accounts.models import User
from larder.accounts.service import change_account
from larder.accounts.sessions import find_session, start_session
from larder.api_keys.keys import create_key
from larder.api_keys.properties import NewKey
from larder.clock import to_iso
from larder.teams.members import add_member
from larder.teams.models import MAX_LISTED, Role
from larder.teams.teams import create_team
from tests.conftest import SetOption
from tests.functions.api_keys.people import verified
from tests.proofs.aws_calls import counted
from tests.requests import SESSION_COOKIE, Browser, Sender, browser_of

CONSOLE = "/console"
DAY = timedelta(days=1)


def signed_in(user: User, age: timedelta) -> Browser:
    _, token = start_session(user, now=clock.now() - age)
    return browser_of(user, token=token)


def test_it_has_what_the_requests_of_the_api_answer(ada: User, bob: User, browser: Browser) -> None:
    now = clock.now()
    for slug in ("web", "app"):
        create_team("Acme", slug, owner_user_id=ada.id, now=now)
    other = create_team("Other", "other", owner_user_id=bob.id, now=now)
    add_member(other.id, ada.id, Role.VIEWER, now=now)
    create_team("Of others", "others", owner_user_id=bob.id, now=now)
    reply = browser.get(CONSOLE)
    assert reply.status == 200
    found, session = reply.json, browser.get("/get-session").json
    assert found["user"] == session["user"]
    assert found["session"] == {**session["session"], "fresh": True}
    send = Sender(found["session"]["token"])
    teams = send("GET", "/v2/teams").json
    assert (found["teams"], found["pagination"]) == (teams["teams"], teams["pagination"])
    roles = {team["slug"]: team["membership"]["role"] for team in found["teams"]}
    assert roles == {"app": "OWNER", "other": "VIEWER", "web": "OWNER"}
    assert reply.headers["cache-control"] == "no-store"


def test_it_says_when_the_access_of_a_managed_user_ends(ada: User, browser: Browser) -> None:
    assert browser.get(CONSOLE).json["accessUntil"] is None
    until = clock.now() + DAY
    change_account(ada.id, lambda one: replace(one, user=replace(one.user, access_until=until)))
    assert browser.get(CONSOLE).json["accessUntil"] == to_iso(until)


def test_further_teams_follow_by_the_list_of_teams(ada: User, browser: Browser) -> None:
    slugs = {f"team-{number}" for number in range(MAX_LISTED + 1)}
    for slug in slugs:
        create_team("Acme", slug, owner_user_id=ada.id, now=clock.now())
    found = browser.get(CONSOLE).json
    assert len(found["teams"]) == MAX_LISTED
    send = Sender(found["session"]["token"])
    rest = send("GET", f"/v2/teams?until={found['pagination']['next']}").json
    assert {team["slug"] for team in found["teams"] + rest["teams"]} == slugs
    assert rest["pagination"]["next"] is None


def test_it_says_who_is_an_operator(ada: User, bob: User, option: SetOption) -> None:
    option("operator_emails", "bob@example.com")
    verified(bob)
    answers = [browser_of(user).get(CONSOLE).json["operator"] for user in (ada, bob)]
    assert answers == [False, True]


def test_a_session_of_two_days_ago_is_not_fresh_and_is_extended(ada: User) -> None:
    browser = signed_in(ada, 2 * DAY)
    reply = browser.get(CONSOLE)
    assert reply.json["session"]["fresh"] is False
    assert reply.cookies[0].startswith(f"{SESSION_COOKIE}=")
    token = reply.json["session"]["token"]
    assert find_session(token, now=clock.now() + 6 * DAY) is not None
    assert browser.get(CONSOLE).cookies == ()


def test_without_a_session_it_is_null(ada: User, option: SetOption) -> None:
    option("session_for_api_keys", "true")
    _, key = create_key(NewKey(user_id=ada.id), now=clock.now())
    for headers in ({}, {"x-api-key": key}, {"authorization": f"Bearer {key}"}):
        reply = Browser().get(CONSOLE, headers=headers)
        assert (reply.status, reply.body) == (200, b"null")


def test_its_calls_do_not_grow_with_the_teams(ada: User, browser: Browser) -> None:
    def calls() -> list[list[str]]:
        browser.get(CONSOLE)
        with counted() as calls:
            browser.get(CONSOLE)
        return calls.steps

    create_team("Acme", "a", owner_user_id=ada.id, now=clock.now())
    before = calls()
    for slug in ("b", "c", "d"):
        create_team("Acme", slug, owner_user_id=ada.id, now=clock.now())
    assert calls() == before
