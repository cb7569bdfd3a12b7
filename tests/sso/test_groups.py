"""Groups of a provider become roles in teams, at each sign-in."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest

from larder import clock
from larder.accounts.models import User
from larder.accounts.service import create_user, find_user_by_email
from larder.accounts.sessions import start_session
from larder.api_keys.keys import create_key, find_key
from larder.api_keys.properties import NewKey
from larder.audit.service import read_entries
from larder.errors import InvalidValue, MembershipManaged
from larder.sso import memberships as managed
from larder.sso import service
from larder.teams import members
from larder.teams.models import Role, Team
from larder.teams.teams import create_team
from tests.requests import Browser, Sender, browser_of
from tests.sso.conftest import Journey, add, error_of
from tests.sso.hostile_provider import HostileProvider


@pytest.fixture
def owner(aws_in_memory: None, on_loopback: None) -> User:
    return create_user("owner@home.example", "Owner", email_verified=True, now=clock.now())


@pytest.fixture
def web(owner: User) -> Team:
    return create_team("Web", "web", owner_user_id=owner.id, now=clock.now())


@pytest.fixture
def journey(web: Team, hostile: HostileProvider) -> Journey:
    """The provider sends groups. The group `eng` are developers of the team `web`."""
    add(hostile, groups_claim="groups")
    managed.map_group("acme", web.id, "eng", Role.DEVELOPER)
    hostile.userinfo = {"sub": "ada-1"}
    return Journey(hostile, Browser())


def ada() -> str:
    user = find_user_by_email("ada@acme.example")
    assert user is not None
    return user.id


def actions(team: Team) -> list[tuple[str, str | None]]:
    page = read_entries(team.id, limit=50, now=clock.now())
    return [(entry.action.value, entry.role) for entry in page.entries]


def test_a_group_is_added_changed_and_lost(journey: Journey, web: Team) -> None:
    assert error_of(journey.sign_in(groups=["eng", "other"])) is None
    assert members.role_of(web.id, ada()) is Role.DEVELOPER
    member = next(one for one in members.list_members(web.id) if one.user_id == ada())
    assert member.managed_by == "acme"
    managed.map_group("acme", web.id, "leads", Role.ADMIN)
    journey.sign_in(groups=["eng", "leads"])
    assert members.role_of(web.id, ada()) is Role.ADMIN
    journey.sign_in(groups=["eng"])
    assert members.role_of(web.id, ada()) is Role.DEVELOPER
    journey.sign_in(groups=["ENG", "eng "])
    assert members.role_of(web.id, ada()) is None
    assert actions(web)[:4] == [
        ("member_removed", "DEVELOPER"),
        ("role_changed", "DEVELOPER"),
        ("role_changed", "ADMIN"),
        ("member_added", "DEVELOPER"),
    ]


def test_a_membership_names_the_group_that_gives_its_role(journey: Journey, web: Team, owner: User) -> None:
    managed.map_group("acme", web.id, "ops", Role.DEVELOPER)
    managed.map_group("acme", web.id, None, Role.VIEWER)

    def group_of_ada(manage: Sender) -> str | None:
        listed = manage("GET", "/v3/teams/web/members").json["members"]
        group: str | None = next(one for one in listed if one["uid"] == ada())["managedGroup"]
        return group

    manage = Sender(browser_token(owner))
    journey.sign_in(groups=["eng", "ops"])
    assert group_of_ada(manage) == "eng"
    # The role is the same, and no one has to know of it in the audit log.
    journey.sign_in(groups=["ops"])
    assert group_of_ada(manage) == "ops"
    assert actions(web)[0] == ("member_added", "DEVELOPER")
    journey.sign_in(groups=[])
    assert group_of_ada(manage) is None
    assert actions(web)[0] == ("role_changed", "VIEWER")


def test_those_who_manage_members_see_the_roles_by_group(journey: Journey, web: Team, owner: User) -> None:
    managed.map_group("acme", web.id, "leads", Role.ADMIN)
    managed.map_group("acme", web.id, None, Role.VIEWER)
    journey.sign_in(groups=["eng"])
    seen = Sender(browser_token(owner))("GET", "/v3/teams/web/members").json
    assert seen["groupRoles"] == [
        {"providerId": "acme", "group": "leads", "role": "ADMIN"},
        {"providerId": "acme", "group": "eng", "role": "DEVELOPER"},
        {"providerId": "acme", "group": None, "role": "VIEWER"},
    ]
    developer = find_user_by_email("ada@acme.example")
    assert developer is not None
    seen = Sender(browser_token(developer))("GET", "/v3/teams/web/members").json
    assert seen["groupRoles"] == []


def test_an_empty_list_ends_the_membership_and_the_keys_bound_to_the_team(journey: Journey, web: Team) -> None:
    journey.sign_in(groups=["eng"])
    key, token = create_key(NewKey(user_id=ada(), team_id=web.id), now=clock.now())
    own, _ = create_key(NewKey(user_id=ada()), now=clock.now())
    build = Sender(token, slug="web")
    assert build("GET", "/v8/artifacts/status").status == 200
    journey.sign_in(groups=[])
    assert build("GET", "/v8/artifacts/status").status in (401, 403)
    assert find_key(key.id) is None
    assert find_key(own.id) is not None


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({}, "missing"),
        ({"groups": "eng"}, "not_a_list"),
        ({"groups": [["eng"]]}, "not_a_list"),
        ({"groups": None}, "missing"),
        ({"groups": ["x" * 257]}, "too_many"),
        ({"groups": [f"g{n}" for n in range(501)]}, "too_many"),
        ({"_claim_names": {"groups": "src1"}, "_claim_sources": {}}, "too_many"),
    ],
)
def test_24_a_list_that_is_missing_or_too_long_changes_nothing(
    journey: Journey, web: Team, log: StringIO, claims: dict[str, Any], reason: str
) -> None:
    """Attack 24: a forged or huge list, and a provider that stops sending groups."""
    journey.sign_in(groups=["eng"])
    assert error_of(journey.sign_in(**claims)) is None
    assert members.role_of(web.id, ada()) is Role.DEVELOPER
    assert f'"groups_problem":"{reason}"' in log.getvalue()


def test_groups_can_come_from_userinfo(journey: Journey, web: Team) -> None:
    journey.provider.userinfo = {"sub": "ada-1", "groups": ["eng"]}
    journey.sign_in()
    assert members.role_of(web.id, ada()) is Role.DEVELOPER


def test_everyone_gets_a_role_without_groups(journey: Journey, web: Team, owner: User) -> None:
    docs = create_team("Docs", "docs", owner_user_id=owner.id, now=clock.now())
    managed.map_group("acme", docs.id, None, Role.VIEWER)
    journey.sign_in()
    assert members.role_of(docs.id, ada()) is Role.VIEWER
    assert members.role_of(web.id, ada()) is None
    managed.unmap_group("acme", docs.id, None)
    journey.sign_in()
    assert members.role_of(docs.id, ada()) is None


def test_memberships_that_people_made_are_not_changed(journey: Journey, web: Team) -> None:
    journey.sign_in(groups=[])
    members.add_member(web.id, ada(), Role.VIEWER, now=clock.now())
    journey.sign_in(groups=["eng"])
    assert members.role_of(web.id, ada()) is Role.VIEWER
    journey.sign_in(groups=[])
    assert members.role_of(web.id, ada()) is Role.VIEWER


def test_the_last_owner_stays(journey: Journey, web: Team, owner: User) -> None:
    managed.map_group("acme", web.id, "chiefs", Role.OWNER)
    journey.sign_in(groups=["chiefs"])
    members.remove_member(web.id, owner.id, by=None)
    for groups in ([], ["eng"]):
        assert error_of(journey.sign_in(groups=groups)) is None
        assert members.role_of(web.id, ada()) is Role.OWNER
        assert actions(web)[0] == ("last_owner_kept", "OWNER")
    members.add_member(web.id, owner.id, Role.OWNER, now=clock.now())
    journey.sign_in(groups=["eng"])
    assert members.role_of(web.id, ada()) is Role.DEVELOPER


def test_a_managed_member_is_not_changed_by_hand(journey: Journey, web: Team, owner: User) -> None:
    journey.sign_in(groups=["eng"])
    manage = Sender(browser_token(owner))
    member = f"/v1/teams/web/members/{ada()}"
    reply = manage("PATCH", member, json_body={"role": "ADMIN"})
    assert (reply.status, reply.code) == (409, "membership_managed")
    reply = manage("DELETE", member)
    assert (reply.status, reply.code) == (409, "membership_managed")
    # Nor does the member leave.
    user = find_user_by_email("ada@acme.example")
    assert user is not None
    reply = Sender(browser_token(user))("DELETE", member)
    assert (reply.status, reply.code) == (409, "membership_managed")
    with pytest.raises(MembershipManaged):
        members.add_member(web.id, ada(), Role.ADMIN, now=clock.now())
    listed = manage("GET", "/v3/teams/web/members").json["members"]
    assert {one["uid"]: one["managedBy"] for one in listed} == {ada(): "acme", owner.id: None}
    # The provider is removed: people manage the membership again.
    service.remove_provider("acme")
    assert manage("DELETE", member).status == 200
    assert managed.list_mappings("acme") == []


def browser_token(user: User) -> str:
    return start_session(user, now=clock.now())[1]


def test_a_provider_has_at_most_twenty_teams(journey: Journey, owner: User) -> None:
    now = clock.now()
    teams = [create_team(f"T{n}", f"team-{n}", owner_user_id=owner.id, now=now) for n in range(managed.MAX_TEAMS)]
    for team in teams[:-1]:
        managed.map_group("acme", team.id, "eng", Role.DEVELOPER)
    with pytest.raises(InvalidValue):
        managed.map_group("acme", teams[-1].id, "eng", Role.DEVELOPER)
    # All of them fit into the transaction of one sign-in, with the claim of an account.
    create_user("ada@acme.example", "X", password="correct horse battery", now=now)
    assert error_of(journey.sign_in(groups=["eng"])) is None
    assert len(members.teams_of(ada())) == managed.MAX_TEAMS
    assert error_of(journey.sign_in(groups=[])) is None
    assert members.teams_of(ada()) == []


def test_a_team_that_was_deleted_is_left_out(journey: Journey, web: Team, owner: User) -> None:
    assert Sender(browser_token(owner))("DELETE", "/v1/teams/web").status == 200
    assert error_of(journey.sign_in(groups=["eng"])) is None
    assert members.teams_of(ada()) == []


def test_the_provider_of_a_team_is_found_by_its_slug(journey: Journey, web: Team) -> None:
    reply = journey.start("/sign-in/sso", organizationSlug="web")
    assert reply.status == 200
    for slug in ("docs", "nowhere", ""):
        assert journey.start("/sign-in/sso", organizationSlug=slug).status in (400, 404)
    managed.unmap_group("acme", web.id, "eng")
    assert journey.start("/sign-in/sso", organizationSlug="web").status == 404


def test_linking_an_account_applies_no_groups(journey: Journey, web: Team) -> None:
    user = create_user("ada@acme.example", "Ada", email_verified=True, now=clock.now())
    journey.browser = browser_of(user)
    journey.sign_in(start={"path": "/link-social"}, groups=["eng"])
    assert members.role_of(web.id, user.id) is None
