"""With parallel requests, a team keeps at least one owner, and its count of owners stays exact. On the local DynamoDB
server.

Requests overlap as in test_key_exactness.py: held requests all read before any of them writes.
"""

import random
from collections import Counter

import pytest

from larder import clock
from larder.errors import LastOwner, MemberNotFound
from larder.hashing import random_id
from larder.tables import TEAMS
from larder.teams.members import add_member, leave_teams, list_members, remove_member
from larder.teams.models import Role, Team
from larder.teams.teams import create_team
from tests.proofs.overlapping import READ_THEN_WRITTEN, Job, Overlap, all_at_once, every_overlap, outcome

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("on_the_local_server")]

OWNERS = 12


def make(owners: int) -> tuple[Team, list[str]]:
    """Create a team with this number of owners."""
    now, users = clock.now(), [random_id() for _ in range(owners)]
    team = create_team("Team", random_id(12).lower(), owner_user_id=users[0], now=now)
    for user in users[1:]:
        add_member(team.id, user, Role.OWNER, now=now)
    return team, users


def removal(team: Team, user_id: str) -> Job:
    return outcome(lambda: remove_member(team.id, user_id, by=None))


def change(team: Team, user_id: str, role: Role) -> Job:
    return outcome(lambda: add_member(team.id, user_id, role, now=clock.now()))


def owners_of(team: Team) -> list[str]:
    """The owners. Fails if the team's item has another count."""
    owners = [member.user_id for member in list_members(team.id) if member.role is Role.OWNER]
    item = TEAMS.get(team.id, "team")
    assert item is not None
    assert item["owners"] == len(owners)
    return owners


@every_overlap
def test_of_owners_who_all_leave_one_stays(overlap: Overlap) -> None:
    team, users = make(OWNERS)
    done = all_at_once([removal(team, user) for user in users], overlap, held_calls=READ_THEN_WRITTEN)
    assert Counter(one.answer for one in done) == {"done": OWNERS - 1, LastOwner.__name__: 1}
    assert len(owners_of(team)) == len(list_members(team.id)) == 1


@every_overlap
def test_the_count_of_owners_is_exact_after_joining_leaving_and_changing(overlap: Overlap) -> None:
    """Half of the changes are about the same two members. Nothing is counted twice."""
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
        assert {one.answer for one in done} <= {"done", LastOwner.__name__, MemberNotFound.__name__}
        assert owners_of(team) != []


@every_overlap
def test_parallel_joins_of_one_owner_count_once(overlap: Overlap) -> None:
    team, _ = make(1)
    bob = random_id()
    done = all_at_once([change(team, bob, Role.OWNER)] * OWNERS, overlap, held_calls=READ_THEN_WRITTEN)
    assert Counter(one.answer for one in done) == {"done": OWNERS}
    assert len(owners_of(team)) == len(list_members(team.id)) == 2


@every_overlap
def test_a_deleted_user_is_removed_while_all_other_owners_leave(overlap: Overlap) -> None:
    """A deleted user is removed even as the last owner, so no owner or one is left. An owner can still be added."""
    team, (ada, *others) = make(OWNERS)
    jobs = [outcome(lambda: leave_teams(ada)), *(removal(team, user) for user in others)]
    done = all_at_once(jobs, overlap, held_calls=READ_THEN_WRITTEN)
    assert done[0].answer == "done"
    left = owners_of(team)
    assert ada not in left
    assert len(left) <= 1
    add_member(team.id, ada, Role.OWNER, now=clock.now())
    assert ada in owners_of(team)
