"""What still works after a person has left, by the way in which they left, and what the receipt says.

Cy has a private address, an account at the company's provider, a password, two keys, and two keys of the team that they
have made. They also added a rule.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from larder import clock
from larder.accounts import access, repository
from larder.accounts.email_jobs import MakerLeft, parse_job
from larder.accounts.models import User
from larder.accounts.service import create_user, find_user
from larder.accounts.sessions import start_session
from larder.actor import Actor
from larder.api_keys.keys import create_key, find_key, rotate_key
from larder.api_keys.properties import NewKey
from larder.sso import service
from larder.sso.memberships import changes_at_sign_in, map_group
from larder.tables import commit
from larder.teams.members import add_member, role_of
from larder.teams.models import Member, Role
from larder.teams.repository import leaving
from larder.trust.models import NewRule
from larder.trust.rules import create_rule
from tests.cli.conftest import Larder
from tests.cli.fake_aws import FakeAws
from tests.conftest import Clock
from tests.functions.accounts.conftest import PASSWORD
from tests.functions.teams.rules import IDS
from tests.issuer import ORIGIN
from tests.mailbox import Mailbox
from tests.requests import Cloud, Reply, Sender, browser_of, invoke
from tests.sso.providers import add_acme, link

DAY = timedelta(days=1)
BUILDS = {"artifacts": ("read", "write")}
MANAGES = {"artifacts": ("read", "write", "manage")}


@dataclass(frozen=True)
class Left:
    """Cy, and what they know. `mail` returns the jobs of mail to the owners."""

    cloud: Cloud
    user: User
    session: Sender
    own: str
    bound: str
    manages: tuple[str, str]
    builds: tuple[str, str]
    rule_id: str
    mail: Callable[[], list[MakerLeft]]

    def owner(self, method: str, path: str, body: Any = None) -> Reply:
        """A request of the owner."""
        session = start_session(self.cloud.user, now=clock.now())[1]
        return Sender(session)(method, path, json_body=body)

    def ends_at(self) -> datetime | None:
        """When the key of the team that manages ends."""
        key = find_key(self.manages[0])
        assert key is not None
        return key.expires_at

    @property
    def member(self) -> str:
        return f"/v1/teams/acme/members/{self.user.id}"

    def works(self) -> dict[str, Any]:
        """The outcome of each of Cy's credentials."""
        role = role_of(self.cloud.team.id, self.user.id)
        return {
            "session": self.session("GET", "/api/auth/get-session").json is not None,
            "password": sign_in(self.user).status,
            "own key": status(self.own),
            "bound key": status(self.bound),
            "team key that manages": status(self.manages[1]),
            "team key of builds": status(self.builds[1]),
            "role": None if role is None else role.value,
        }


def sign_in(user: User, password: str = PASSWORD) -> Reply:
    body = {"email": user.email, "password": password}
    return Sender(None)("POST", "/api/auth/sign-in/email", json_body=body)


def status(raw: str) -> int:
    return Sender(raw, slug="acme")("GET", "/v8/artifacts/status").status


def sweep() -> None:
    invoke("accounts.sweep_deleted_users.handler", {})


@pytest.fixture
def cy(cloud: Cloud, later: Clock, mail_function: FakeAws, mailbox: Mailbox) -> Left:
    now = clock.now()
    user = create_user("cy@private.example", "Cy", password=PASSWORD, email_verified=True, now=now)
    link(user, add_acme())
    team_id = cloud.team.id

    def key(permissions: Any) -> tuple[str, str]:
        new = NewKey(user_id=None, team_id=team_id, made_by=user.id, permissions=permissions)
        made, raw = create_key(new, now=now)
        return made.id, raw

    admin = Member(user_id=user.id, role=Role.ADMIN, joined_at=now)
    add_member(team_id, user.id, Role.ADMIN, now=now)
    rule = create_rule(
        team_id,
        NewRule(provider="github", pinned=IDS),
        by=admin,
        actor=Actor("session", user.id),
        origin=ORIGIN,
        now=now,
    )

    def mail() -> list[MakerLeft]:
        payloads = [*map(json.loads, mail_function.bodies), *mailbox.payloads]
        return [job for job in map(parse_job, payloads) if isinstance(job, MakerLeft)]

    return Left(
        cloud=cloud,
        user=user,
        session=Sender(start_session(user, now=now)[1]),
        own=create_key(NewKey(user_id=user.id), now=now)[1],
        bound=create_key(NewKey(user_id=user.id, team_id=team_id), now=now)[1],
        manages=key(MANAGES),
        builds=key(BUILDS),
        rule_id=rule.id,
        mail=mail,
    )


def gives_role(cy: Left) -> None:
    """Let the provider give the membership, as at a sign-in."""
    provider = service.require_provider("acme")
    commit(*leaving(cy.cloud.team.id, cy.user.id, Role.ADMIN))
    map_group("acme", cy.cloud.team.id, None, Role.ADMIN)
    commit(*changes_at_sign_in(provider, (), cy.user.id, now=clock.now()).writes)


def sign_in_stops(cy: Left, larder: Larder, later: Clock) -> None:
    gives_role(cy)
    assert larder.json("sso", "require", "acme", "--yes")["other_addresses"] == [cy.user.email]
    later.pass_(DAY)
    # The session is from before, and would have lasted a week.
    assert cy.session("GET", "/api/auth/get-session").json is None
    assert status(cy.own) == 200
    later.pass_(30 * DAY)
    sweep()


def suspended(cy: Left, larder: Larder, later: Clock) -> dict[str, Any]:
    return dict(larder.json("users", "suspend", cy.user.email))


def removed(cy: Left, larder: Larder, later: Clock) -> dict[str, Any]:
    return dict(larder.json("teams", "remove-member", "acme", cy.user.email))


def demoted(cy: Left, larder: Larder, later: Clock) -> dict[str, Any]:
    return dict(larder.json("teams", "add-member", "acme", cy.user.email, "--role", "VIEWER"))


def unlinked(cy: Left, larder: Larder, later: Clock) -> dict[str, Any]:
    gives_role(cy)
    return dict(larder.json("sso", "unlink", "acme", cy.user.email))


ENDED = {"session": False, "password": 403, "own key": 401, "bound key": 401}
GOES_ON = {"session": True, "password": 200}
OUTSIDE = {"own key": 403, "bound key": 401, "role": None}


@pytest.mark.parametrize(
    ("leave", "expected"),
    [
        (sign_in_stops, {**ENDED, "role": None}),
        (suspended, {**ENDED, "role": "ADMIN"}),
        (removed, {**GOES_ON, **OUTSIDE}),
        (demoted, {**GOES_ON, "own key": 200, "bound key": 200, "role": "VIEWER"}),
        (unlinked, {**GOES_ON, **OUTSIDE}),
    ],
)
def test_what_works_after_someone_has_left(
    cy: Left, larder: Larder, later: Clock, leave: Any, expected: dict[str, Any]
) -> None:
    receipt = leave(cy, larder, later)
    team_keys = {"team key that manages": 200, "team key of builds": 200}
    assert cy.works() == {**expected, **team_keys}
    # The receipt and the mail to the owner name the same.
    (job,) = cy.mail()
    assert job.mail_context.base_url.startswith("http")
    assert (job.user_id, job.maker, job.rules) == (cy.cloud.user.id, cy.user.email, [cy.rule_id])
    known = {cy.manages[0], cy.builds[0]}
    assert ({*job.known}, {*job.ending}) == (known, {cy.manages[0]})
    if receipt is not None:
        assert {known_key["id"] for known_key in receipt["known_keys"]} == known
        assert receipt["rules"] == [{"team": "acme", "id": cy.rule_id}]
    sweep()
    later.pass_(14 * DAY)
    sweep()
    assert status(cy.manages[1]) == 401
    assert status(cy.builds[1]) == 200


def test_a_key_goes_on_for_a_maker_who_is_back(cy: Left, larder: Larder, later: Clock) -> None:
    larder("users", "suspend", cy.user.email)
    sweep()
    assert cy.ends_at() == clock.now() + 14 * DAY
    listed = {key["id"]: key for key in cy.owner("GET", "/v1/teams/acme/keys").json["keys"]}
    assert listed[cy.manages[0]]["knownTo"][0]["leftAt"] is not None
    larder("users", "resume", cy.user.email)
    sweep()
    assert cy.ends_at() is None


@pytest.mark.parametrize("how", ["rotated", "given another expiry"])
def test_an_owner_takes_a_key_over(cy: Left, larder: Larder, later: Clock, how: str) -> None:
    larder("teams", "remove-member", "acme", cy.user.email)
    sweep()
    if how == "rotated":
        made = rotate_key(cy.manages[0], overlap_s=60, now=clock.now())
        assert made is not None
        key_id, raw = made[0].id, made[1]
        assert made[0].expires_at is None
    else:
        key_id, raw = cy.manages
        body = {"configId": "team", "keyId": key_id, "expiresIn": 30 * 86_400}
        assert cy.owner("POST", "/api/auth/api-key/update", body).status == 200
    later.pass_(15 * DAY)
    sweep()
    assert status(raw) == 200


def test_rotate_known_replaces_the_keys_that_the_person_knows(cy: Left, larder: Larder, later: Clock) -> None:
    record = larder.json("users", "suspend", cy.user.email, "--rotate-known")
    assert {one["replaces"] for one in record["rotated"]} == {cy.manages[0], cy.builds[0]}
    later.pass_(DAY)
    assert [status(one["key"]) for one in record["rotated"]] == [200, 200]
    assert (status(cy.manages[1]), status(cy.builds[1])) == (401, 401)
    assert all(cy.user.id not in find_key(one["key_id"]).known_to for one in record["rotated"])  # type: ignore[union-attr]


def test_people_read_the_receipt_too(cy: Left, larder: Larder) -> None:
    shown = larder("users", "show", cy.user.email).stdout
    assert all(one in shown for one in (cy.manages[0], cy.builds[0], cy.rule_id, "acme ADMIN"))
    text = larder("users", "suspend", cy.user.email).stdout
    assert all(one in text for one in (cy.manages[0], cy.builds[0], f"acme {cy.rule_id}"))
    assert cy.manages[1] not in text


def test_owners_end_a_membership_whose_account_is_gone(cy: Left, larder: Larder) -> None:
    gives_role(cy)
    assert cy.owner("DELETE", cy.member).code == "membership_managed"
    # As after an interrupted `unlink`, before the sweep.
    commit(*repository.unlinking_all(cy.user.id))
    assert cy.owner("DELETE", cy.member).status == 200


def test_an_interrupted_unlink_ends_with_the_sweep(cy: Left, larder: Larder, monkeypatch: pytest.MonkeyPatch) -> None:
    gives_role(cy)
    with monkeypatch.context() as patch:
        patch.setattr("larder.accounts.linking.end_given", lambda *_, **__: [])
        larder("sso", "unlink", "acme", cy.user.email)
    assert role_of(cy.cloud.team.id, cy.user.id) is Role.ADMIN
    sweep()
    assert role_of(cy.cloud.team.id, cy.user.id) is None
    assert status(cy.bound) == 401


def test_what_a_provider_gave_lasts_until_some_days_after_the_last_sign_in(
    cy: Left, larder: Larder, later: Clock
) -> None:
    """Also while it is optional."""
    gives_role(cy)
    later.pass_(29 * DAY)
    provider = service.require_provider("acme")
    commit(*changes_at_sign_in(provider, (), cy.user.id, now=clock.now()).writes)
    later.pass_(29 * DAY)
    sweep()
    assert role_of(cy.cloud.team.id, cy.user.id) is Role.ADMIN
    later.pass_(DAY)
    sweep()
    assert role_of(cy.cloud.team.id, cy.user.id) is None


def test_a_linked_person_with_another_address_is_managed(cy: Left, larder: Larder) -> None:
    larder("sso", "require", "acme", "--yes")
    assert larder.json("sso", "show", "acme")["other_addresses"] == [cy.user.email]
    for path, body in (
        ("change-password", {"currentPassword": PASSWORD, "newPassword": "another correct horse"}),
        ("change-email", {"newEmail": "cy@other.example"}),
        ("unlink-account", {"providerId": "credential"}),
    ):
        reply = cy.session("POST", f"/api/auth/{path}", json_body=body)
        assert reply.refusal == (403, "SSO_REQUIRED")
    assert sign_in(cy.user).refusal == (403, "SSO_REQUIRED")
    # Only who knows the password learns it.
    assert sign_in(cy.user, "wrong horse").refusal == (401, "INVALID_EMAIL_OR_PASSWORD")
    larder("sso", "optional", "acme")
    assert sign_in(cy.user).status == 200


def test_a_linked_person_keeps_an_address_of_the_company(cloud: Cloud, mailbox: Mailbox) -> None:
    """Also while the provider is optional: the link would be all that shows whose account it is."""
    link(cloud.user, add_acme())
    body = {"newEmail": "ada@private.example"}
    reply = browser_of(cloud.user).post("/change-email", body)
    assert reply.refusal == (403, "EMAIL_CAN_NOT_BE_UPDATED")
    assert mailbox.jobs == []
    service.change_provider("acme", lambda one: replace(one, domains=()), now=clock.now())
    assert browser_of(cloud.user).post("/change-email", body).status == 200


def test_unlinking_gives_nobody_their_access_back(cy: Left, larder: Larder, later: Clock) -> None:
    larder("sso", "require", "acme", "--yes")
    later.pass_(31 * DAY)
    larder("sso", "unlink", "acme", cy.user.email)
    assert (status(cy.own), sign_in(cy.user).status) == (401, 403)
    found = find_user(cy.user.id)
    assert found is not None
    assert not found.has_access(clock.now())
    access.resume_user(cy.user.id)
    assert status(cy.own) == 200


def test_a_change_of_roles_over_http_settles_keys_as_well(cy: Left, larder: Larder) -> None:
    for role, ends in (("DEVELOPER", True), ("ADMIN", False)):
        assert cy.owner("PATCH", cy.member, {"role": role}).status == 200
        sweep()
        assert (cy.ends_at() is not None) is ends
