"""Permissions that a session from a key can grant to other keys: only those of the key itself."""

from datetime import timedelta
from typing import Any

import pytest

from larder import clock
from larder.api_keys.keys import create_key, list_keys
from larder.api_keys.models import ApiKey, Permissions, RateLimit
from larder.api_keys.principals import Principal
from larder.api_keys.properties import KeyChanges, NewKey
from larder.api_keys.self_service import grant_key, update_key
from larder.errors import NotATeamMember, PermissionNotHeld
from larder.teams.teams import create_team, delete_team
from tests.principals import by_session
from tests.requests import Cloud

READ: Permissions = {"artifacts": ("read",)}
BOTH: Permissions = {"artifacts": ("read", "write")}


def by_key(cloud: Cloud, **properties: Any) -> Principal:
    """Ada, authenticated with a key that has these properties."""
    key, _ = create_key(NewKey(user_id=cloud.user.id, **properties), now=clock.now())
    return Principal(credential=key)


def create(principal: Principal, **properties: Any) -> ApiKey:
    return grant_key(principal, NewKey(user_id=principal.user_id, **properties), now=clock.now())[0]


def test_a_key_can_grant_only_its_own_permissions(cloud: Cloud) -> None:
    reading = by_key(cloud, permissions=READ)
    assert create(reading, permissions=READ).permissions == READ
    assert create(reading).permissions == READ
    with pytest.raises(PermissionNotHeld, match="artifacts: write"):
        create(reading, permissions=BOTH)


def test_a_key_cannot_grant_what_its_user_does_not_have(cloud: Cloud) -> None:
    given_by_an_operator = by_key(cloud, permissions={"billing": ("refund",)})
    with pytest.raises(PermissionNotHeld, match="billing: refund"):
        create(given_by_an_operator, permissions={"billing": ("refund",)})
    assert create(given_by_an_operator).permissions == {}


def test_a_team_key_creates_keys_only_for_its_team(cloud: Cloud) -> None:
    bound = by_key(cloud, team_id=cloud.team.id)
    assert create(bound).team_id == cloud.team.id
    other = create_team("Other", "other", owner_user_id=cloud.user.id, now=clock.now())
    with pytest.raises(NotATeamMember):
        create(bound, team_id=other.id)
    assert create(by_key(cloud), team_id=other.id).team_id == other.id


def test_no_key_is_created_for_a_deleted_team(cloud: Cloud) -> None:
    """Its members are deleted later, by the sweep."""
    delete_team(cloud.team.id, by=None, now=clock.now())
    with pytest.raises(NotATeamMember):
        create(by_session(cloud.user.id), team_id=cloud.team.id)
    assert [key.id for key in list_keys(cloud.user.id)] == [cloud.key.id]


def test_a_key_cannot_create_a_key_that_expires_later(cloud: Cloud) -> None:
    ending = by_key(cloud, expires_in_s=3600)
    assert create(ending, expires_in_s=60).expires_at is not None
    for seconds in (None, 7200):
        with pytest.raises(PermissionNotHeld, match="expires later"):
            create(ending, expires_in_s=seconds)


@pytest.mark.parametrize(
    "counted", [{"remaining": 5}, {"rate_limit": RateLimit(enabled=True, window_ms=1000, max_requests=5)}]
)
def test_a_key_with_limited_uses_cannot_create_keys(cloud: Cloud, counted: dict[str, Any]) -> None:
    with pytest.raises(PermissionNotHeld, match="uses are counted"):
        create(by_key(cloud, **counted))


@pytest.mark.parametrize(
    ("held", "target", "changes"),
    [
        ({"permissions": READ}, {"permissions": BOTH}, KeyChanges(name="mine")),
        ({"permissions": READ}, {"permissions": BOTH}, KeyChanges(enabled=True)),
        ({"permissions": READ}, {"permissions": READ}, KeyChanges(permissions=BOTH)),
        ({"expires_in_s": 60}, {"expires_in_s": 60}, KeyChanges(expires_in_s=None)),
        ({"expires_in_s": 60}, {}, KeyChanges(name="mine")),
        ({"remaining": 5}, {}, KeyChanges(name="mine")),
    ],
)
def test_a_key_cannot_change_another_key_beyond_its_own_permissions(
    cloud: Cloud, held: dict[str, Any], target: dict[str, Any], changes: KeyChanges
) -> None:
    key, _ = create_key(NewKey(user_id=cloud.user.id, **target), now=clock.now())
    with pytest.raises(PermissionNotHeld):
        update_key(by_key(cloud, **held), key.id, changes, now=clock.now())
    assert key in list_keys(cloud.user.id)


def test_a_key_cannot_extend_its_own_life_or_permissions(cloud: Cloud) -> None:
    principal = by_key(cloud, permissions=READ, expires_in_s=60)
    assert principal.key is not None
    for changes in (KeyChanges(permissions=BOTH), KeyChanges(expires_in_s=3600), KeyChanges(expires_in_s=None)):
        with pytest.raises(PermissionNotHeld):
            update_key(principal, principal.key.id, changes, now=clock.now())
    assert update_key(principal, principal.key.id, KeyChanges(name="new"), now=clock.now()).name


def test_two_changes_in_one_millisecond_have_different_times(cloud: Cloud) -> None:
    ada, now = by_session(cloud.user.id), clock.now() - timedelta(days=1)
    first = update_key(ada, cloud.key.id, KeyChanges(name="a"), now=now)
    second = update_key(ada, cloud.key.id, KeyChanges(name="b"), now=now)
    assert cloud.key.updated_at < first.updated_at < second.updated_at


def test_a_user_with_a_session_can_grant_team_permissions_which_are_not_defaults(cloud: Cloud) -> None:
    """The user's role in a team decides what the key can do there."""
    everything: Permissions = {"teams": ("read", "write")}
    ada = by_session(cloud.user.id)
    for team_id in (None, cloud.team.id):
        assert create(ada, team_id=team_id, permissions=everything).permissions == everything
        assert "teams" not in create(ada, team_id=team_id).permissions
    with pytest.raises(PermissionNotHeld, match="teams: delete"):
        create(ada, permissions={"teams": ("delete",)})
    with pytest.raises(PermissionNotHeld, match="teams: write"):
        create(by_key(cloud, permissions={"teams": ("read",)}), permissions=everything)
