"""A team keeps one owner, and its count of owners stays that of its members, however many requests ask at once: on the
local DynamoDB server.

The same way of making requests meet as for keys (test_key_exactness.py): held ones all read before any of them writes.
"""

import random
from collections import Counter

import pytest

from larder import clock
from larder.errors import LastOwner
from larder.hashing import random_id
from larder.tables import TEAMS
from larder.teams.models import Role, Team
from larder.teams.service import (
    add_member,
    create_team,
    leave_teams,
    members,
    remove_member,
)
from tests.proofs.overlapping import (
    READ_THEN_WRITTEN,
    Job,
    Overlap,
    all_at_once,
    every_overlap,
    outcome,
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("on_the_local_server")]

OWNERS = 12


def make(owners: int) -> tuple[Team, list[str]]:
    """A team with so many owners."""
    now, users = clock.now(), [random_id() for _ in range(owners)]
    team = create_team("Team", random_id(12).lower(), owner_user_id=users[0], now=now)
    for user in users[1:]:
        add_member(team.id, user, Role.OWNER, now=now)
    return team, users


def removal(team: Team, user_id: str) -> Job:
    return outcome(lambda: remove_member(team.id, user_id))


def change(team: Team, user_id: str, role: Role) -> Job:
    return outcome(lambda: add_member(team.id, user_id, role, now=clock.now()))


def owners_of(team: Team) -> list[str]:
    """The owners, who are as many as the team's item counts."""
    owners = [member.user_id for member in members(team.id) if member.role is Role.OWNER]
    item = TEAMS.get(team.id, "team")
    assert item is not None
    assert item["owners"] == len(owners)
    return owners


@every_overlap
def test_of_owners_who_all_leave_at_once_one_stays(overlap: Overlap) -> None:
    team, users = make(OWNERS)
    done = all_at_once(
        [removal(team, user) for user in users], overlap, held_calls=READ_THEN_WRITTEN
    )
    assert Counter(one.answer for one in done) == {"done": OWNERS - 1, LastOwner.__name__: 1}
    assert len(owners_of(team)) == len(members(team.id)) == 1


@every_overlap
def test_of_owners_who_all_get_another_role_at_once_one_stays_owner(overlap: Overlap) -> None:
    team, users = make(OWNERS)
    done = all_at_once(
        [change(team, user, Role.MEMBER) for user in users], overlap, held_calls=READ_THEN_WRITTEN
    )
    assert Counter(one.answer for one in done) == {"done": OWNERS - 1, LastOwner.__name__: 1}
    assert len(owners_of(team)) == 1
    assert len(members(team.id)) == OWNERS


@every_overlap
def test_removals_and_other_roles_together_leave_one_owner(overlap: Overlap) -> None:
    team, users = make(OWNERS)
    jobs = [
        removal(team, user) if number % 2 else change(team, user, Role.VIEWER)
        for number, user in enumerate(users)
    ]
    done = all_at_once(jobs, overlap, held_calls=READ_THEN_WRITTEN)
    assert Counter(one.answer for one in done)[LastOwner.__name__] == 1
    assert len(owners_of(team)) == 1


@every_overlap
def test_one_who_is_removed_and_made_something_less_at_once_is_counted_off_once(
    overlap: Overlap,
) -> None:
    team, (_, bob, *_) = make(4)
    jobs = [removal(team, bob), change(team, bob, Role.MEMBER), removal(team, bob)]
    all_at_once(jobs, overlap, held_calls=READ_THEN_WRITTEN)
    assert len(owners_of(team)) == 3


@every_overlap
def test_the_count_is_that_of_the_members_after_joining_leaving_and_changing(
    overlap: Overlap,
) -> None:
    """Half of the changes meet at the same two people; whatever each of them answers, nothing is counted twice."""
    chance = random.Random(overlap.seed)
    team, users = make(4)
    contested = users[:2]
    people = [*users, *(random_id() for _ in range(4))]
    for _ in range(3):
        jobs = []
        for number in range(OWNERS):
            user = chance.choice(contested if number % 2 else people)
            role = chance.choice([None, Role.OWNER, Role.OWNER, Role.MEMBER])
            jobs.append(removal(team, user) if role is None else change(team, user, role))
        done = all_at_once(jobs, overlap)
        assert {one.answer for one in done} <= {"done", LastOwner.__name__}
        assert owners_of(team) != []


@every_overlap
def test_joining_twice_at_once_counts_one_owner(overlap: Overlap) -> None:
    team, _ = make(1)
    bob = random_id()
    done = all_at_once(
        [change(team, bob, Role.OWNER)] * OWNERS, overlap, held_calls=READ_THEN_WRITTEN
    )
    assert Counter(one.answer for one in done) == {"done": OWNERS}
    assert len(owners_of(team)) == len(members(team.id)) == 2


@every_overlap
def test_who_is_gone_leaves_while_everybody_else_does(overlap: Overlap) -> None:
    """They leave even as the last, so that nobody or one is left; a new owner can be named either way."""
    team, (ada, *others) = make(OWNERS)
    jobs = [outcome(lambda: leave_teams(ada)), *(removal(team, user) for user in others)]
    done = all_at_once(jobs, overlap, held_calls=READ_THEN_WRITTEN)
    assert done[0].answer == "done"
    left = owners_of(team)
    assert ada not in left
    assert len(left) <= 1
    add_member(team.id, ada, Role.OWNER, now=clock.now())
    assert ada in owners_of(team)
