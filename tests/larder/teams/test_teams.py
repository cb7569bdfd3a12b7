"""Create teams, change members, and set the state of an owner."""

from datetime import timedelta

import pytest

from larder import clock
from larder.accounts.service import create_user
from larder.errors import InvalidValue, LastOwner, MemberNotFound, TeamNotFound
from larder.settings import settings
from larder.tables import TEAMS, commit
from larder.teams.members import add_member, leave_teams, list_members, remove_member, role_of
from larder.teams.models import Block, CachingStatus, OwnerState, Role
from larder.teams.repository import read_state
from larder.teams.state import change_state
from larder.teams.teams import create_team, find_team
from tests.conftest import SetOption
from tests.faults import unreachable
from tests.requests import Cloud


def test_a_team_id_has_the_prefix_that_build_clients_require(cloud: Cloud) -> None:
    assert cloud.team.id.startswith("team_")


def test_a_team_is_found_by_id_and_by_slug(cloud: Cloud) -> None:
    assert find_team(cloud.team.id) == find_team("acme") == cloud.team
    assert find_team("no-such-team") is None


@pytest.mark.parametrize("slug", ["", "A", "a b", "-a", "a-", "a" * 49, "é", "a\n"])
def test_a_bad_slug_is_refused(cloud: Cloud, slug: str) -> None:
    with pytest.raises(InvalidValue, match=r"^slug: "):
        create_team("Team", slug, owner_user_id=cloud.user.id, now=clock.now())


def test_fields_that_are_not_set_stay(cloud: Cloud) -> None:
    change_state(cloud.team.id, caching=CachingStatus.PAUSED)
    change_state(cloud.team.id, block=Block.SOFT)
    change_state(cloud.team.id, quota_bytes=7)
    assert read_state(cloud.team.id) == OwnerState(caching=CachingStatus.PAUSED, block=Block.SOFT, quota_bytes=7)
    assert change_state(cloud.team.id, unblock=True, default_quota=True) == OwnerState(
        caching=CachingStatus.PAUSED, quota_bytes=settings().default_quota_bytes
    )


def test_a_block_reason_is_set_and_removed_with_its_block(cloud: Cloud, option: SetOption) -> None:
    option("default_quota_bytes", 0)
    blocked = change_state(cloud.team.id, block=Block.PAYMENT, block_reason="invoice 1042")
    assert blocked == OwnerState(block=Block.PAYMENT, block_reason="invoice 1042")
    assert change_state(cloud.team.id, caching=CachingStatus.PAUSED).block_reason == "invoice 1042"
    assert change_state(cloud.team.id, block=Block.SOFT).block_reason is None
    change_state(cloud.team.id, block=Block.SOFT, block_reason="ask Eve")
    assert change_state(cloud.team.id, unblock=True) == OwnerState(caching=CachingStatus.PAUSED)
    with pytest.raises(InvalidValue):
        change_state(cloud.team.id, block_reason="without a block")


def test_a_teams_own_quota_overrides_the_default(cloud: Cloud, option: SetOption) -> None:
    option("default_quota_bytes", 100)
    assert read_state(cloud.team.id).quota_bytes == 100
    assert change_state(cloud.team.id, quota_bytes=7).quota_bytes == 7
    assert change_state(cloud.team.id, default_quota=True).quota_bytes == 100


def test_over_limit_follows_from_the_quota_and_cannot_be_set(cloud: Cloud) -> None:
    with pytest.raises(InvalidValue, match=r"^caching: "):
        change_state(cloud.team.id, caching=CachingStatus.OVER_LIMIT)


def test_an_unknown_team_gets_no_state(cloud: Cloud) -> None:
    with pytest.raises(InvalidValue, match=r"^team: "):
        change_state("team_nosuch", caching=CachingStatus.PAUSED)
    assert find_team("team_nosuch") is None


# Members, and the last owner of a team ----------------------------------------------------------


def joining(cloud: Cloud, role: Role) -> str:
    """Add a new member to the team of `cloud` and return the user id."""
    user = create_user(f"{role.lower()}-{len(list_members(cloud.team.id))}@a.de", "N", now=clock.now())
    add_member(cloud.team.id, user.id, role, now=clock.now())
    return user.id


def roles(cloud: Cloud) -> dict[str, Role]:
    return {member.user_id: member.role for member in list_members(cloud.team.id)}


def counted_owners(cloud: Cloud) -> int:
    item = TEAMS.get(cloud.team.id, "team")
    assert item is not None
    return int(item["owners"])


def test_members_are_in_the_order_of_joining(cloud: Cloud) -> None:
    for number, name in enumerate(("zoe", "bob")):
        later = clock.now() + timedelta(minutes=number + 1)
        add_member(cloud.team.id, name, Role.MEMBER, now=later)
    assert [member.user_id for member in list_members(cloud.team.id)] == [cloud.user.id, "zoe", "bob"]
    assert list_members("team_nosuch") == []


@pytest.mark.parametrize("role", list(Role))
def test_setting_the_same_role_changes_nothing(cloud: Cloud, role: Role) -> None:
    bob = joining(cloud, role)
    before, owners = list_members(cloud.team.id), counted_owners(cloud)
    add_member(cloud.team.id, bob, role, now=clock.now() + timedelta(days=1))
    assert (list_members(cloud.team.id), counted_owners(cloud)) == (before, owners)


def test_a_role_change_keeps_the_time_of_joining(cloud: Cloud) -> None:
    bob = joining(cloud, Role.MEMBER)
    joined_at = {member.user_id: member.joined_at for member in list_members(cloud.team.id)}
    add_member(cloud.team.id, bob, Role.ADMIN, now=clock.now() + timedelta(days=1))
    assert {member.user_id: member.joined_at for member in list_members(cloud.team.id)} == joined_at


@pytest.mark.parametrize("role", [Role.OWNER, Role.MEMBER])
def test_an_unknown_team_cannot_be_joined(cloud: Cloud, role: Role) -> None:
    with pytest.raises(InvalidValue, match=r"^team: "):
        add_member("team_nosuch", cloud.user.id, role, now=clock.now())
    assert list_members("team_nosuch") == []
    assert find_team("team_nosuch") is None


def test_only_a_member_can_be_removed(cloud: Cloud) -> None:
    with pytest.raises(MemberNotFound):
        remove_member(cloud.team.id, "nobody", by=None)
    with pytest.raises(TeamNotFound):
        remove_member("team_nosuch", cloud.user.id, by=None)
    assert roles(cloud) == {cloud.user.id: Role.OWNER}
    assert counted_owners(cloud) == 1


def test_a_deleted_user_leaves_every_team_even_as_the_last_owner(cloud: Cloud) -> None:
    now, bob = clock.now(), joining(cloud, Role.MEMBER)
    other = create_team("Other", "other", owner_user_id=bob, now=now)
    add_member(other.id, cloud.user.id, Role.OWNER, now=now)
    assert leave_teams(cloud.user.id)
    assert roles(cloud) == {bob: Role.MEMBER}
    assert counted_owners(cloud) == 0
    assert role_of(other.id, cloud.user.id) is None
    add_member(cloud.team.id, bob, Role.OWNER, now=now)
    assert counted_owners(cloud) == 1
    assert leave_teams(cloud.user.id)


@pytest.mark.parametrize("operation", ["Query", "BatchGetItem", "TransactWriteItems"])
def test_leaving_reports_a_failure(cloud: Cloud, operation: str) -> None:
    with unreachable("dynamodb", operation):
        assert not leave_teams(cloud.user.id)
    assert roles(cloud) == {cloud.user.id: Role.OWNER}
    assert leave_teams(cloud.user.id)
    assert roles(cloud) == {}


def test_memberships_of_a_deleted_team_end(cloud: Cloud) -> None:
    assert commit(TEAMS.delete(cloud.team.id, "team"))
    assert leave_teams(cloud.user.id)
    assert list_members(cloud.team.id) == []
    assert find_team(cloud.team.id) is None


def test_a_team_stored_without_a_count_never_loses_its_last_owner(cloud: Cloud) -> None:
    """Old data has no count of owners. At worst an owner cannot leave although there is another."""
    assert commit(TEAMS.update(cloud.team.id, "team", set={"owners": None}))
    with pytest.raises(LastOwner):
        remove_member(cloud.team.id, cloud.user.id, by=None)
    joining(cloud, Role.OWNER)
    joining(cloud, Role.OWNER)
    remove_member(cloud.team.id, cloud.user.id, by=None)
    assert list(roles(cloud).values()) == [Role.OWNER] * 2
