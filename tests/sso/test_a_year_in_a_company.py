"""A year in a company of 40 people that requires its provider, week by week, with requests as the gateway sends them.

People come, marry, change the team, go on a long leave, and leave the company. The operator suspends only some of those
who leave, and edits nothing for the others. In summer, the provider is down for two weeks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from random import Random

import pytest
import time_machine

from larder import clock
from larder.accounts import access
from larder.accounts.models import User
from larder.accounts.service import create_user, find_user, find_user_by_email
from larder.api_keys.keys import create_key
from larder.api_keys.properties import NewKey
from larder.sso import service
from larder.sso.models import Mode
from larder.teams.members import add_member, remove_member
from larder.teams.models import Role, Team
from larder.teams.teams import create_team
from larder.trust.models import NewRule
from larder.trust.rules import create_rule
from larder.turbo_login import service as turbo_login
from larder.turbo_login.service import Grant
from tests.functions.accounts.conftest import PASSWORD
from tests.issuer import Issuer, github_claims
from tests.mailbox import Mailbox
from tests.requests import Browser, Sender, invoke
from tests.sso.conftest import ORIGIN, Journey, add, error_of
from tests.sso.hostile_provider import HostileProvider
from tests.trust.exchanging import exchange

START = datetime(2027, 1, 4, 9, tzinfo=UTC)
WEEK = timedelta(days=7)
WEEKS = 52
PEOPLE = 40
OUTAGE = range(26, 28)
REQUIRED_FROM = 4
TEAMS = ("web", "api", "infra")


@dataclass
class Person:
    """`comes` and `leaves` are weeks. `away` are the weeks of a long leave. `marries` and `moves` are weeks, too."""

    subject: str
    email: str
    name: str
    team: str
    comes: int
    leaves: int = WEEKS + 1
    away: range = range(0)
    marries: int = WEEKS + 1
    moves: int = WEEKS + 1
    is_suspended: bool = False
    has_password: bool = False
    browser: Browser = field(default_factory=Browser)
    user: User | None = None
    keys: dict[str, Sender] = field(default_factory=dict)
    signed_in_at: datetime | None = None

    def is_here(self, week: int) -> bool:
        return self.comes <= week < self.leaves

    def is_at_work(self, week: int) -> bool:
        return self.is_here(week) and week not in self.away

    def is_due(self) -> bool:
        """Whether they want to use the console again."""
        return self.signed_in_at is None or clock.now() - self.signed_in_at >= 3 * WEEK

    @property
    def known(self) -> User:
        assert self.user is not None
        found = find_user(self.user.id)
        assert found is not None
        return found


def staff() -> list[Person]:
    """Fourteen people leave, five go on a leave of eight weeks, six marry, and six change the team."""
    random = Random(2027)
    people = [
        Person(
            subject=f"sub-{n}",
            email=f"person{n}@acme.example",
            name=f"Person {n}",
            team=random.choice(TEAMS),
            comes=0 if n < 15 else random.randrange(1, OUTAGE.start),
            has_password=n < 6,
        )
        for n in range(PEOPLE)
    ]
    random.shuffle(people)
    leaving, staying = people[:14], people[14:]
    for number, person in enumerate(leaving):
        person.leaves = random.randrange(max(person.comes + 2, 6), 46)
        person.is_suspended = number % 3 == 0
    for person in staying[:5]:
        first = random.randrange(max(person.comes + 2, 8), 40)
        person.away = range(first, first + 8)
    for person in staying[5:11]:
        person.marries = random.randrange(person.comes + 2, 50)
    for person in staying[11:17]:
        person.moves = random.randrange(person.comes + 2, 50)
    return people


class Company:
    """The people, the teams with what their CI uses, and the mails that warned people."""

    def __init__(self, hostile: HostileProvider, mailbox: Mailbox) -> None:
        self.hostile, self.mailbox = hostile, mailbox
        self.people = staff()
        self.warned: dict[str, list[datetime]] = {}
        self.root = create_user("root@acme.example", "Root", password=PASSWORD, now=clock.now())
        self.teams = {slug: self._team(slug) for slug in TEAMS}
        self.ci = {slug: self._key_of_team(team) for slug, team in self.teams.items()}
        self.issuer = Issuer()

    def _team(self, slug: str) -> Team:
        team = create_team(slug, slug, owner_user_id=self.root.id, now=clock.now())
        pinned = {"repository_id": "74", "repository_owner_id": "65"}
        new = NewRule(provider="github", pinned=pinned)
        create_rule(team.id, new, by=None, origin=ORIGIN, now=clock.now())
        return team

    def _key_of_team(self, team: Team) -> Sender:
        new = NewKey(user_id=None, team_id=team.id, made_by=self.root.id, permissions={"artifacts": ("read", "write")})
        return Sender(create_key(new, now=clock.now())[1], slug=team.slug)

    def live(self, week: int) -> None:
        for person in self.people:
            if person.comes == week:
                self.welcome(person)
            if person.moves == week:
                self.move(person, TEAMS[TEAMS.index(person.team) - 1])
            if person.marries == week:
                person.name = f"{person.name} Lovelace"
                person.email = f"married.{person.email}"
            if person.leaves == week and person.is_suspended:
                access.suspend_user(person.known.id, now=clock.now())
            if person.is_at_work(week) and person.is_due():
                self.sign_in(person, works=week not in OUTAGE)
        self.sweep()

    def sweep(self) -> None:
        """As it runs every hour, but twice a week."""
        invoke("accounts.sweep_deleted_users.handler", {})
        for user_id in self._deliver():
            self.warned.setdefault(user_id, []).append(clock.now())

    def _deliver(self) -> list[str]:
        """The ids of the users that the waiting mails warn."""
        waiting = [payload["user_id"] for payload in self.mailbox.payloads if payload["kind"] == "access_ends"]
        self.mailbox.deliver()
        return waiting

    def welcome(self, person: Person) -> None:
        if person.has_password:
            person.user = create_user(
                person.email, person.name, password=PASSWORD, email_verified=True, now=clock.now()
            )
        else:
            self.sign_in(person)
            person.user = find_user_by_email(person.email)
        self.join(person, person.team)
        person.keys["everywhere"] = self.new_key(person, None)

    def join(self, person: Person, slug: str) -> None:
        team = self.teams[slug]
        add_member(team.id, person.known.id, Role.MEMBER, now=clock.now())
        person.team = slug
        person.keys["team"] = self.new_key(person, team.id)

    def move(self, person: Person, slug: str) -> None:
        remove_member(self.teams[person.team].id, person.known.id, by=None)
        assert status(person.keys["team"]) in (401, 403)
        self.join(person, slug)

    def new_key(self, person: Person, team_id: str | None) -> Sender:
        new = NewKey(user_id=person.known.id, team_id=team_id)
        return Sender(create_key(new, now=clock.now())[1])

    def sign_in(self, person: Person, *, works: bool = True) -> None:
        reply = Journey(self.hostile, person.browser).sign_in(sub=person.subject, email=person.email, name=person.name)
        assert error_of(reply) == (None if works else "provider_unavailable")
        if works:
            person.signed_in_at = clock.now()

    def check(self, week: int) -> None:
        self.issuer.publish()
        for slug, key in self.ci.items():
            assert status(key) == 200, (week, slug)
            token = self.issuer.mint(github_claims(aud=ORIGIN))
            job = exchange(token, team_id_or_slug=slug)
            assert job.status == 200, (week, slug, job)
            assert status(Sender(job.json["access_token"])) == 200
        # A half of the people each week, so that this takes no minutes.
        for person in self.people[week % 2 :: 2]:
            if person.user is not None:
                self.check_person(person, week)

    def check_person(self, person: Person, week: int) -> None:
        key = person.keys["team" if week % 4 < 2 else "everywhere"]
        user, works = person.known, status(key) == 200
        assert works == user.has_access(clock.now()), (week, person)
        if person.is_here(week) and not works:
            # Only a long leave ends the access of someone who stays, and never without a warning.
            assert week in person.away, (week, person)
        if user.access_until and user.access_until <= clock.now() and not user.suspended_at:
            ends_at = user.access_until
            warnings = self.warned.get(user.id, [])
            assert any(ends_at - WEEK <= at < ends_at for at in warnings), (week, person)


def status(send: Sender) -> int:
    return send("GET", "/v8/artifacts/status").status


@pytest.fixture
def calendar() -> Iterator[time_machine.Traveller]:
    with time_machine.travel(START, tick=False) as traveller:
        yield traveller


def down(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(503)
    handler.end_headers()


@pytest.mark.thorough
def test_a_year_in_a_company(
    calendar: time_machine.Traveller, aws_in_memory: None, on_loopback: None, hostile: HostileProvider, mailbox: Mailbox
) -> None:
    add(hostile)
    company = Company(hostile, mailbox)
    for week in range(WEEKS):
        calendar.move_to(START + week * WEEK)
        if week == REQUIRED_FROM:
            require()
        if week == OUTAGE.start:
            hostile.answers["/token"] = down
            access.extend_access(service.require_provider("acme"), 21, now=clock.now())
        if week == OUTAGE.stop:
            hostile.answers.clear()
        if week == 40:
            # Done again, it gives nobody more time.
            assert require() == []
        company.live(week)
        company.check(week)
        calendar.shift(WEEK / 2)
        company.sweep()

    calendar.move_to(START + WEEKS * WEEK)
    gone = [person for person in company.people if person.leaves < WEEKS]
    stayed = [person for person in company.people if person not in gone]
    assert (len(gone), len(stayed)) == (14, 26)
    assert len(company.warned) >= 5 + 14 - 5
    for person in gone:
        assert_is_out(person)
    for person in stayed:
        assert {status(key) for key in person.keys.values()} == {200}
        assert person.known.email == person.email

    # The operator goes back to passwords, which some of those who left still know.
    provider, _ = service.change_provider("acme", lambda one: replace(one, mode=Mode.OPTIONAL), now=clock.now())
    access.settle_access(service.require_provider("acme"), now=clock.now())
    assert provider.mode is Mode.REQUIRED
    calendar.shift(4 * WEEK)
    for person in gone:
        assert_is_out(person)
    for person in stayed:
        assert {status(key) for key in person.keys.values()} == {200}
    assert all(status(key) == 200 for key in company.ci.values())


def require() -> list[User]:
    """As `larder sso require acme --except root@acme.example`."""
    now = clock.now()
    _, provider = service.change_provider(
        "acme", lambda one: replace(one, mode=Mode.REQUIRED, exceptions=("root@acme.example",)), now=now
    )
    return access.settle_access(provider, now=now)


def assert_is_out(person: Person) -> None:
    """Every credential of someone who left the company is dead: keys, session, login code and password."""
    user = person.known
    assert {status(key) for key in person.keys.values()} == {401}
    assert person.browser.get("/get-session").json is None
    code = turbo_login.create_token(user, Grant(sso_team=person.team), now=clock.now()).text
    exchanged = Sender(None).asking(token=code, tokenName="Turbo CLI on host")("GET", "/registration/verify")
    assert exchanged.status == 401
    if person.has_password:
        body = {"email": user.email, "password": PASSWORD}
        reply = Browser().post("/sign-in/email", body, headers={"origin": ORIGIN})
        assert reply.refusal[0] == 403
    key = person.keys["everywhere"].token
    verified = Sender(None)("POST", "/api/auth/api-key/verify", json_body={"key": key})
    assert verified.json["valid"] is False
