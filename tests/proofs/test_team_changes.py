"""Parallel requests create, rename, join and delete teams, and leave consistent data. On the local DynamoDB server.

Requests overlap as in test_team_owners.py. The tests then check the data: each slug finds the team that lists it and no
other, a deleted team has no members, and nothing is counted twice.
"""

from collections import Counter

import pytest

from larder import clock
from larder.conditions import equals
from larder.errors import (
    InvitationLimitReached,
    InvitationNotFound,
    MissingRole,
    SlugTaken,
    TeamLimitReached,
    TeamNotFound,
)
from larder.hashing import random_id
from larder.invitations import service as invitations
from larder.invitations.models import Invitation, Invitee
from larder.settings import settings
from larder.tables import TEAMS
from larder.teams.members import add_member, change_role, list_members, role_of
from larder.teams.models import Member, Role, Team
from larder.teams.teams import TeamChange, change_team, create_team, delete_team, delete_team_items, find_team
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


def invitee(name: str, role: Role = Role.MEMBER) -> Invitee:
    return Invitee(email=f"{name}@b.example", address=f"{name}@b.example", role=role)


def invited(team: Team, by: Member | None = None, role: Role = Role.MEMBER) -> Invitation:
    (made,) = invitations.create_invitations(team.id, [invitee(slug(), role)], by=by, now=clock.now())
    return made


def acceptance(invitation: Invitation, user_id: str) -> Job:
    return outcome(lambda: invitations.accept(invitation, user_id, now=clock.now()))


def stored(team_id: str) -> list[str]:
    """The sort keys of all items of the team."""
    return sorted(item["sk"] for item in TEAMS.query(equals(pk=team_id)))


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
@pytest.mark.parametrize("role", [Role.MEMBER, Role.OWNER])
def test_parallel_acceptances_of_an_invitation_succeed_once(overlap: Overlap, role: Role) -> None:
    team, owner = make()
    invitation, user = invited(team, owner, role), random_id()
    done = all_at_once([acceptance(invitation, user)] * CROWD, overlap, held_calls=READ_THEN_WRITTEN)
    answers = Counter(one.answer for one in done)
    assert answers == {"done": 1, InvitationNotFound.__name__: CROWD - 1}
    assert [member.role for member in list_members(team.id) if member.user_id == user] == [role]
    item = TEAMS.get(team.id, "team")
    assert item is not None
    assert item["owners"] == 1 + (role is Role.OWNER)


@every_overlap
def test_an_invitation_that_is_replaced_and_accepted_counts_once(overlap: Overlap) -> None:
    team, owner = make()
    first, user = invited(team, owner), random_id()
    again = Invitee(email=first.email, address=first.address, role=Role.VIEWER)
    jobs = [acceptance(first, user)] * 4
    jobs += [outcome(lambda: invitations.create_invitations(team.id, [again], by=owner, now=clock.now()))] * 4
    done = all_at_once(jobs, overlap)
    joined = Counter(one.answer for one in done[:4])
    assert joined["done"] in (0, 1)
    assert {one.answer for one in done[4:]} == {"done"}
    assert (role_of(team.id, user) is not None) is bool(joined["done"])
    assert len(invitations.open_invitations(team.id, now=clock.now())) <= 1


@every_overlap
def test_parallel_invitations_stay_within_the_limit(overlap: Overlap, environment: pytest.MonkeyPatch) -> None:
    environment.setenv("LARDER_MAX_OPEN_INVITATIONS", "5")
    settings.cache_clear()
    team, owner = make()

    def inviting(*names: str) -> Job:
        wanted = [invitee(name) for name in names]
        return outcome(lambda: invitations.create_invitations(team.id, wanted, by=owner, now=clock.now()))

    jobs = [inviting(slug()) for _ in range(4)] + [inviting(slug(), slug()) for _ in range(3)]
    done = all_at_once(jobs, overlap, held_calls=READ_THEN_WRITTEN)
    assert {one.answer for one in done} <= {"done", InvitationLimitReached.__name__}
    made = sum(1 + (number >= 4) for number, one in enumerate(done) if one.answer == "done")
    assert made == len(invitations.open_invitations(team.id, now=clock.now()))
    assert 4 <= made <= 5


@every_overlap
def test_parallel_creations_stay_within_the_limit_of_teams(overlap: Overlap, environment: pytest.MonkeyPatch) -> None:
    environment.setenv("LARDER_MAX_TEAMS_PER_USER", "3")
    settings.cache_clear()
    user, slugs = random_id(), [slug() for _ in range(8)]
    jobs = [
        outcome(
            lambda one=one: create_team("T", one, owner_user_id=user, limited=True, now=clock.now())  # type: ignore[misc]
        )
        for one in slugs
    ]
    done = all_at_once(jobs, overlap)
    assert Counter(one.answer for one in done) == {"done": 3, TeamLimitReached.__name__: 5}
    assert sum(find_team(one) is not None for one in slugs) == 3


@every_overlap
def test_a_team_that_is_deleted_while_users_join_has_no_members(overlap: Overlap) -> None:
    team, owner = make()
    invitation = invited(team, owner)
    newcomers = [random_id() for _ in range(4)]
    jobs = [deletion(team, owner)]
    jobs += [
        outcome(lambda user=user: add_member(team.id, user, Role.OWNER, now=clock.now()))  # type: ignore[misc]
        for user in newcomers
    ]
    jobs += [acceptance(invitation, random_id()), acceptance(invitation, random_id())]
    jobs += [outcome(lambda: invitations.create_invitations(team.id, [invitee(slug())], by=owner, now=clock.now()))] * 2
    jobs += [renaming(team, slug(), owner), renaming(team, slug(), owner)]
    jobs += [outcome(lambda: change_role(team.id, owner.user_id, Role.ADMIN, by=owner))]
    done = all_at_once(jobs, overlap)
    if done[0].answer == MissingRole.__name__:
        # Another owner has joined, and the caller is no longer an owner, so the team is not deleted.
        assert done[-1].answer == "done"
        assert find_team(team.id) is not None
        return
    assert done[0].answer == "done"
    assert find_team(team.id) is None
    assert find_team(team.slug) is None
    # The sweep deletes memberships from before the deletion. Later requests to join are refused.
    assert delete_team_items(team.id, has_time=lambda: True)
    assert stored(team.id) == []
    late = [
        acceptance(invitation, random_id()),
        renaming(team, slug(), owner),
        outcome(lambda: invitations.create_invitations(team.id, [invitee(slug())], by=owner, now=clock.now())),
    ]
    assert {job() for job in late} <= {InvitationNotFound.__name__, TeamNotFound.__name__}
    assert stored(team.id) == []


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
