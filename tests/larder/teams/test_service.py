"""Make teams, move members, and set what an owner may do."""

import pytest

from larder import clock
from larder.errors import InvalidRequest
from larder.teams.models import Block, CachingStatus, OwnerState, Role, SlugTaken
from larder.teams.repository import read_standing, read_state
from larder.teams.service import change_state, create_team, find_team, list_teams
from tests.conftest import SetOption
from tests.requests import Cloud


def test_a_team_id_starts_so_that_the_build_client_sends_it(cloud: Cloud) -> None:
    assert cloud.team.id.startswith("team_")


def test_whoever_makes_a_team_owns_it(cloud: Cloud) -> None:
    assert read_standing(cloud.team.id, cloud.user.id).role is Role.OWNER


def test_a_team_is_found_by_id_and_by_slug(cloud: Cloud) -> None:
    assert find_team(cloud.team.id) == find_team("acme") == cloud.team
    assert find_team("no-such-team") is None


def test_a_slug_belongs_to_one_team(cloud: Cloud) -> None:
    with pytest.raises(SlugTaken):
        create_team("Another", "acme", owner_user_id=cloud.user.id, now=clock.now())
    assert [team.id for team in list_teams()] == [cloud.team.id]


@pytest.mark.parametrize("slug", ["", "A", "a b", "-a", "a-", "a" * 49, "é", "a\n"])
def test_a_bad_slug_is_refused(cloud: Cloud, slug: str) -> None:
    with pytest.raises(InvalidRequest, match=r"^slug: "):
        create_team("Team", slug, owner_user_id=cloud.user.id, now=clock.now())


def test_what_is_not_given_stays(cloud: Cloud) -> None:
    change_state(cloud.team.id, caching=CachingStatus.PAUSED)
    change_state(cloud.team.id, block=Block.SOFT)
    change_state(cloud.team.id, quota_bytes=7)
    assert read_state(cloud.team.id) == OwnerState(
        caching=CachingStatus.PAUSED, block=Block.SOFT, quota_bytes=7
    )
    assert change_state(cloud.team.id, unblock=True, default_quota=True) == OwnerState(
        caching=CachingStatus.PAUSED
    )


def test_a_quota_of_ones_own_stands_above_the_deployments(cloud: Cloud, option: SetOption) -> None:
    option("default_quota_bytes", 100)
    assert read_state(cloud.team.id).quota_bytes == 100
    assert change_state(cloud.team.id, quota_bytes=7).quota_bytes == 7
    assert change_state(cloud.team.id, default_quota=True).quota_bytes == 100


def test_over_limit_follows_from_the_quota_and_is_never_set(cloud: Cloud) -> None:
    with pytest.raises(InvalidRequest, match=r"^caching: "):
        change_state(cloud.team.id, caching=CachingStatus.OVER_LIMIT)


def test_a_team_that_does_not_exist_gets_no_state(cloud: Cloud) -> None:
    with pytest.raises(InvalidRequest, match=r"^team: "):
        change_state("team_nosuch", caching=CachingStatus.PAUSED)
    assert find_team("team_nosuch") is None
