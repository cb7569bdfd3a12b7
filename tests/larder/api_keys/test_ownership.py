"""Keys of users that become their team's: by a rotation, and by adoption."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from larder import clock, deletions
from larder.accounts.models import User
from larder.accounts.password_resets import issue_reset_token, reset_password
from larder.accounts.service import create_user, delete_user
from larder.api_keys import repository
from larder.api_keys.keys import (
    create_key,
    delete_keys_of,
    delete_keys_of_member,
    find_key,
    list_keys,
    prepare_key,
    rotate_key,
    store_key,
)
from larder.api_keys.models import ApiKey, Permissions, scope_of_user
from larder.api_keys.ownership import adopt_key, rotate_to_team
from larder.api_keys.properties import NewKey
from larder.audit.models import Action
from larder.audit.service import read_entries
from larder.errors import InvalidValue, KeyLimitReached
from larder.tables import IDENTITY, commit
from larder.teams.members import add_member, remove_member
from larder.teams.models import Role
from larder.teams.teams import delete_team
from tests.conftest import SetOption
from tests.faults import just_before
from tests.functions.accounts.conftest import MAIL_CONTEXT
from tests.mailbox import Mailbox
from tests.requests import Cloud, Sender

READ_WRITE: Permissions = {"artifacts": ("read", "write")}


@pytest.fixture
def bob(cloud: Cloud, option: SetOption) -> User:
    option("scrypt_cost", 1024)
    bob = create_user("bob@acme.example", "Bob", password="correct horse battery", now=clock.now())
    add_member(cloud.team.id, bob.id, Role.ADMIN, now=clock.now())
    return bob


def bound(cloud: Cloud, bob: User, **properties: object) -> tuple[ApiKey, str]:
    fields = {"permissions": READ_WRITE, "name": "ci", **properties}
    return create_key(
        NewKey(user_id=bob.id, team_id=cloud.team.id, **fields),  # type: ignore[arg-type]
        now=clock.now(),
    )


def status(raw: str) -> int:
    return Sender(raw)("GET", "/v8/artifacts/status").status


def adopted(key: ApiKey) -> ApiKey:
    found = adopt_key(key.id, now=clock.now())
    assert found is not None
    return found


def test_an_adopted_key_keeps_its_id_its_secret_and_its_fields(cloud: Cloud, bob: User) -> None:
    key, raw = bound(cloud, bob, metadata={"repo": "web"}, expires_in_s=90_000)
    assert status(raw) == 200
    now_teams = adopted(key)
    assert (now_teams.id, now_teams.key_hash, now_teams.name) == (key.id, key.key_hash, "ci")
    assert (now_teams.metadata, now_teams.expires_at) == (key.metadata, key.expires_at)
    assert now_teams.own_scope == key.own_scope
    assert (now_teams.made_by, now_teams.known_to) == (bob.id, (bob.id,))
    assert now_teams.role_cap is Role.DEVELOPER
    assert find_key(key.id) == now_teams
    assert status(raw) == 200
    assert [one.id for one in list_keys(cloud.team.id)] == [key.id]
    assert list_keys(bob.id) == []


def test_the_audit_of_both_owners_has_the_adoption(cloud: Cloud, bob: User) -> None:
    key, _ = bound(cloud, bob)
    adopted(key)
    for owner in (bob.id, cloud.team.id):
        page = read_entries(owner, limit=10, actions=[Action.KEY_ADOPTED], now=clock.now())
        assert [(entry.subject, entry.actor, entry.name) for entry in page.entries] == [(key.id, None, "ci")]


@pytest.mark.parametrize("end", ["removal", "reset", "deletion", "sweep", "keys of the member"])
def test_an_adopted_key_outlives_its_user(cloud: Cloud, bob: User, mailbox: Mailbox, end: str) -> None:
    key, raw = bound(cloud, bob)
    other, _ = bound(cloud, bob)
    adopted(key)
    match end:
        case "removal":
            remove_member(cloud.team.id, bob.id, by=None)
            delete_keys_of_member(cloud.team.id, bob.id)
        case "reset":
            token = issue_reset_token(bob, now=clock.now())
            reset_password(token, "another horse", MAIL_CONTEXT, now=clock.now())
        case "deletion":
            delete_user(bob.id, now=clock.now())
            assert delete_keys_of(bob.id) == 1
        case "sweep":
            delete_user(bob.id, now=clock.now())
            deletions.sweep_users(now=clock.now() + timedelta(days=2), has_time=lambda: True)
        case "keys of the member":
            delete_keys_of_member(cloud.team.id, bob.id)
    assert find_key(other.id) is None
    assert status(raw) == 200


def test_a_deletion_that_overlaps_an_adoption_leaves_the_key(cloud: Cloud, bob: User) -> None:
    """The deletion has read the keys of the user before the adoption."""
    key, raw = bound(cloud, bob)
    read = repository.keys_of(bob.id)
    adopted(key)
    assert not repository.delete_all(read)
    repository.delete_bound_to(cloud.team.id, read)
    assert status(raw) == 200
    # As the index shows it for some milliseconds.
    stale = read._replace(version=repository.keys_of(bob.id).version)
    assert not repository.delete_all(stale)
    assert status(raw) == 200


def test_an_adopted_key_ends_with_the_team(cloud: Cloud, bob: User) -> None:
    key, raw = bound(cloud, bob)
    adopted(key)
    delete_team(cloud.team.id, by=None, now=clock.now())
    assert status(raw) == 401
    deletions.sweep_teams(now=clock.now() + timedelta(days=2), has_time=lambda: True)
    assert find_key(key.id) is None


def test_a_key_of_version_0_1_0_is_adopted(cloud: Cloud, bob: User) -> None:
    """That version kept no set of a user's keys."""
    key, raw = bound(cloud, bob)
    commit(repository._BESIDE_KEYS.delete(repository._KEYS_OF + bob.id))
    adopted(key)
    delete_user(bob.id, now=clock.now())
    delete_keys_of(bob.id)
    assert status(raw) == 200


def test_the_keys_of_a_team_are_limited(cloud: Cloud, bob: User, option: SetOption) -> None:
    first, _ = bound(cloud, bob)
    second, raw = bound(cloud, bob)
    adopted(first)
    option("max_keys_per_user", "1")
    with pytest.raises(KeyLimitReached):
        adopt_key(second.id, now=clock.now())
    with pytest.raises(KeyLimitReached):
        rotate_to_team(second.id, overlap_s=60, now=clock.now())
    assert [key.id for key in list_keys(bob.id)] == [second.id]
    assert status(raw) == 200
    # A rotation of what the team owns already needs no place.
    assert rotate_key(first.id, overlap_s=60, now=clock.now()) is not None


def unbound(cloud: Cloud, bob: User) -> ApiKey:
    return create_key(NewKey(user_id=bob.id), now=clock.now())[0]


def of_the_team(cloud: Cloud, bob: User) -> ApiKey:
    return adopted(bound(cloud, bob)[0])


def of_a_former_member(cloud: Cloud, bob: User) -> ApiKey:
    key, _ = bound(cloud, bob)
    remove_member(cloud.team.id, bob.id, by=None)
    return key


def of_one_who_came_back(cloud: Cloud, bob: User) -> ApiKey:
    key = of_a_former_member(cloud, bob)
    later = clock.now() + timedelta(seconds=1)
    add_member(cloud.team.id, bob.id, Role.ADMIN, now=later)
    return key


def with_teams(cloud: Cloud, bob: User) -> ApiKey:
    return bound(cloud, bob, permissions={**READ_WRITE, "teams": ("read",)})[0]


def with_more_than_its_user_has(cloud: Cloud, bob: User) -> ApiKey:
    key, _ = bound(cloud, bob, permissions={"artifacts": ("read", "write", "trust")})
    add_member(cloud.team.id, bob.id, Role.DEVELOPER, now=clock.now())
    return key


REFUSED = {
    unbound: "is not bound to a team",
    of_the_team: "belongs to its team already",
    of_a_former_member: "has ended, because its user has left the team",
    of_one_who_came_back: "has ended",
    with_teams: "must not have teams",
    with_more_than_its_user_has: "has artifacts: trust, which its user does not have",
}


@pytest.mark.parametrize(("make", "rule"), REFUSED.items(), ids=[one.__name__ for one in REFUSED])
def test_what_no_team_can_own(cloud: Cloud, bob: User, make: Callable[[Cloud, User], ApiKey], rule: str) -> None:
    key = make(cloud, bob)
    before = find_key(key.id)
    for change in (
        lambda: adopt_key(key.id, now=clock.now()),
        lambda: rotate_to_team(key.id, overlap_s=60, now=clock.now()),
    ):
        with pytest.raises(InvalidValue, match=rule):
            change()
    assert find_key(key.id) == before


def test_an_unknown_key_is_neither(cloud: Cloud) -> None:
    assert adopt_key("nothing", now=clock.now()) is None
    assert rotate_to_team("nothing", overlap_s=60, now=clock.now()) is None


def test_a_member_who_leaves_meanwhile_takes_the_key_along(cloud: Cloud, bob: User) -> None:
    key, raw = bound(cloud, bob)
    leave = lambda: remove_member(cloud.team.id, bob.id, by=None)  # noqa: E731
    with just_before("dynamodb", "TransactWriteItems", leave), pytest.raises(InvalidValue):
        adopt_key(key.id, now=clock.now())
    assert status(raw) == 403


@pytest.mark.parametrize("overlap_s", [0, 3600])
def test_a_rotation_to_the_team(cloud: Cloud, bob: User, overlap_s: int) -> None:
    old, raw = bound(cloud, bob, metadata={"repo": "web"}, prefix="ci_")
    made = rotate_to_team(old.id, overlap_s=overlap_s, now=clock.now())
    assert made is not None
    new, new_raw = made
    assert (new.name, new.prefix, new.permissions) == ("ci", "ci_", READ_WRITE)
    assert (find_key(new.id) or new).metadata == {"repo": "web"}
    assert (new.holder_id, new.made_by, new.known_to) == (cloud.team.id, None, ())
    assert new.own_scope == old.own_scope
    assert (status(raw), status(new_raw)) == (200 if overlap_s else 401, 200)
    remove_member(cloud.team.id, bob.id, by=None)
    assert status(new_raw) == 200


def test_a_team_does_not_get_the_scope_of_a_user(cloud: Cloud, bob: User) -> None:
    """As of a key that `turbo login` made."""
    new = NewKey(user_id=bob.id, team_id=cloud.team.id, permissions=READ_WRITE)
    key, _ = prepare_key(new, now=clock.now())
    key = store_key(replace(key, scope=scope_of_user(bob.id)))
    made = rotate_to_team(key.id, overlap_s=60, now=clock.now())
    assert made is not None
    assert made[0].own_scope == f"k{made[0].id}"
    assert adopted(key).own_scope == f"k{key.id}"


def test_a_rotation_keeps_the_team_as_owner(cloud: Cloud, bob: User) -> None:
    first = of_the_team(cloud, bob)
    made = rotate_key(first.id, overlap_s=60, now=clock.now())
    assert made is not None
    new, raw = made
    assert (new.holder_id, new.role_cap, new.known_to) == (cloud.team.id, Role.DEVELOPER, ())
    assert status(raw) == 200


def test_a_version_that_does_not_know_such_keys_refuses_them(cloud: Cloud, bob: User) -> None:
    """It takes the holder for a user, does not find it, and so takes the key for one that has ended with its user."""
    key = of_the_team(cloud, bob)
    item = repository.API_KEYS.get(key.key_hash)
    assert item is not None
    assert item["user_id"] == item["team_id"] == cloud.team.id
    assert "rule_id" not in item
    assert IDENTITY.get(item["user_id"], "user") is None
