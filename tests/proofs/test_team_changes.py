"""Parallel requests create, rename and delete teams: each slug finds the team that lists it and no other. On the local
DynamoDB server.

Requests overlap as in test_key_exactness.py. tests/machines has members and invitations.
"""

from collections import Counter

import pytest

from larder import clock
from larder.errors import SlugTaken, TeamNotFound
from larder.hashing import random_id
from larder.teams.models import Member, Role, Team
from larder.teams.teams import TeamChange, change_team, create_team, delete_team, find_team
from tests.proofs.overlapping import READ_THEN_WRITTEN, Job, Overlap, all_at_once, every_overlap, outcome

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("on_the_local_server")]

CROWD = 12


def slug() -> str:
    return random_id(12).lower()


def make() -> tuple[Team, Member]:
    """A team and its owner."""
    owner = random_id()
    team = create_team("Team", slug(), owner_user_id=owner, now=clock.now())
    return team, Member(user_id=owner, role=Role.OWNER, joined_at=clock.now())


def renaming(team: Team, becomes: str, by: Member | None = None) -> Job:
    change = TeamChange(slug=becomes)
    return outcome(lambda: change_team(team.id, change, by=by, now=clock.now()))


def deletion(team: Team, by: Member | None = None) -> Job:
    return outcome(lambda: delete_team(team.id, by=by, now=clock.now()))


def lead_where_they_are_listed(teams: list[Team], slugs: list[str]) -> bool:
    """Whether each slug finds the team that lists it, or no team if none lists it."""
    listed = {one: found.id for team in teams if (found := find_team(team.id)) is not None for one in found.slugs}
    return all((leads.id if (leads := find_team(s)) else None) == listed.get(s) for s in slugs)


@every_overlap
def test_one_of_many_parallel_teams_gets_a_slug(overlap: Overlap) -> None:
    teams, wanted = [make()[0] for _ in range(CROWD)], slug()
    done = all_at_once([renaming(team, wanted) for team in teams], overlap, held_calls=READ_THEN_WRITTEN)
    assert Counter(one.answer for one in done) == {"done": 1, SlugTaken.__name__: CROWD - 1}
    winner = next(team for team, one in zip(teams, done, strict=True) if one.answer == "done")
    found = find_team(wanted)
    assert found is not None
    assert (found.id, found.slugs) == (winner.id, (winner.slug, wanted))
    assert lead_where_they_are_listed(teams, [wanted, *(team.slug for team in teams)])


@every_overlap
def test_parallel_creations_and_renames_to_one_slug(overlap: Overlap) -> None:
    teams, wanted = [make()[0] for _ in range(CROWD // 2)], slug()
    users = [random_id() for _ in range(CROWD // 2)]
    jobs = [renaming(team, wanted) for team in teams]
    jobs += [
        outcome(
            lambda user=user: create_team("New", wanted, owner_user_id=user, limited=True, now=clock.now())  # type: ignore[misc]
        )
        for user in users
    ]
    done = all_at_once(jobs, overlap, held_calls=1)
    assert Counter(one.answer for one in done) == {"done": 1, SlugTaken.__name__: CROWD - 1}
    assert find_team(wanted) is not None


@every_overlap
def test_parallel_renames_of_one_team_keep_all_its_slugs(overlap: Overlap) -> None:
    team, _ = make()
    wanted = [slug() for _ in range(4)]
    done = all_at_once([renaming(team, one) for one in wanted], overlap, held_calls=READ_THEN_WRITTEN)
    assert {one.answer for one in done} == {"done"}
    found = find_team(team.id)
    assert found is not None
    assert set(found.slugs) == {team.slug, *wanted}
    assert found.version == len(wanted)
    assert lead_where_they_are_listed([team], list(found.slugs))


@every_overlap
def test_teams_that_swap_slugs_never_share_one(overlap: Overlap) -> None:
    """Each takes the other's slug, releases its own former slug, and renames back."""
    (one, _), (other, _) = make(), make()
    slugs = [one.slug, other.slug]

    def moving(team: Team, becomes: str) -> Job:
        change = TeamChange(slug=becomes, former_slugs=())
        return outcome(lambda: change_team(team.id, change, by=None, now=clock.now()))

    free = [slug() for _ in range(2)]
    jobs = [moving(one, free[0]), moving(other, free[1])] * 2
    jobs += [moving(one, other.slug), moving(other, one.slug)] * 3
    done = all_at_once(jobs, overlap)
    assert {job.answer for job in done} <= {"done", SlugTaken.__name__}
    assert lead_where_they_are_listed([one, other], [*slugs, *free])
    teams = [find_team(team.id) for team in (one, other)]
    assert all(team is not None for team in teams)


@every_overlap
def test_the_slugs_of_a_team_that_is_deleted_and_renamed_lead_nowhere(overlap: Overlap) -> None:
    team, owner = make()
    wanted = [slug() for _ in range(5)]
    jobs = [deletion(team, owner), *(renaming(team, one, owner) for one in wanted)]
    done = all_at_once(jobs, overlap, held_calls=READ_THEN_WRITTEN)
    assert done[0].answer == "done"
    assert {one.answer for one in done[1:]} <= {"done", TeamNotFound.__name__}
    assert all(find_team(one) is None for one in (team.id, team.slug, *wanted))
    with pytest.raises(SlugTaken):
        create_team("Other", team.slug, owner_user_id=random_id(), now=clock.now())
    for one in (team.slug, *wanted):
        create_team("Other", one, owner_user_id=random_id(), reuses_slug=True, now=clock.now())
