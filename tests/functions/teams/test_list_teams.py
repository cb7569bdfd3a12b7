"""GET /v2/teams"""

from typing import Any

import pytest

from larder import clock
from larder.accounts.service import create_user
from larder.accounts.sessions import start_session
from larder.api_keys.keys import create_key
from larder.api_keys.properties import NewKey
from larder.teams.members import add_member, remove_member
from larder.teams.models import Role
from larder.teams.teams import create_team
from tests.functions.teams.conftest import co_owner
from tests.requests import Cloud, Sender


def teams_of(token: str, query: str = "") -> Any:
    reply = Sender(token, query=query)("GET", "/v2/teams")
    assert reply.status == 200
    return reply.json


def slugs(answer: Any) -> list[str]:
    return [team["slug"] for team in answer["teams"]]


@pytest.fixture
def token(personal: Sender) -> str:
    """A personal key of Ada's."""
    assert personal.token is not None
    return personal.token


def test_a_team_is_shown_as_by_get_team(token: str, cloud: Cloud) -> None:
    assert teams_of(token, "limit=100") == {
        "teams": [Sender(token)("GET", f"/v2/teams/{cloud.team.id}").json],
        "pagination": {"count": 1, "next": None, "prev": None},
    }


def test_every_team_of_the_caller_with_the_callers_role(cloud: Cloud, token: str) -> None:
    now = clock.now()
    bob = create_user("bob@elsewhere.example", "Bob", now=now)
    joined = create_team("Zebra", "a-zebra", owner_user_id=bob.id, now=now)
    create_team("Foreign", "foreign", owner_user_id=bob.id, now=now)
    add_member(joined.id, cloud.user.id, Role.VIEWER, now=now)
    session = start_session(cloud.user, now=now)[1]
    for presented in (token, session):
        answer = teams_of(presented)
        assert slugs(answer) == ["a-zebra", "acme"]
        assert [team["membership"]["role"] for team in answer["teams"]] == ["VIEWER", "OWNER"]
    remove_member(joined.id, cloud.user.id, by=None)
    assert slugs(teams_of(token)) == ["acme"]


def test_a_team_key_sees_only_its_team(cloud: Cloud) -> None:
    create_team("Other", "other", owner_user_id=cloud.user.id, now=clock.now())
    assert slugs(teams_of(cloud.token)) == ["acme"]
    assert teams_of(cloud.token, f"until={cloud.team.id}")["teams"] == []


def test_a_team_key_is_invalid_after_its_user_has_left_the_team(cloud: Cloud) -> None:
    co_owner(cloud)
    remove_member(cloud.team.id, cloud.user.id, by=None)
    assert Sender(cloud.token)("GET", "/v2/teams").status == 401


def test_a_user_without_teams_gets_an_empty_list(cloud: Cloud, stranger: Sender) -> None:
    assert stranger.token is not None
    assert teams_of(stranger.token)["teams"] == []


def test_pages_return_each_team_once(cloud: Cloud, token: str) -> None:
    now = clock.now()
    for number in range(6):
        create_team("More", f"more-{number}", owner_user_id=cloud.user.id, now=now)
    found, query = [], "limit=3"
    sizes = []
    while True:
        answer = teams_of(token, query)
        found += slugs(answer)
        sizes.append(answer["pagination"]["count"])
        following = answer["pagination"]["next"]
        if following is None:
            break
        query = f"limit=3&until={following}"
    assert sizes == [3, 3, 1]
    assert sorted(found) == ["acme", *(f"more-{number}" for number in range(6))]


def test_a_hundred_teams_fit_on_one_page(cloud: Cloud) -> None:
    now = clock.now()
    busy = create_user("busy@acme.example", "Busy", now=now)
    for number in range(100):
        create_team("Team", f"team-{number:02}", owner_user_id=busy.id, now=now)
    answer = teams_of(create_key(NewKey(user_id=busy.id), now=now)[1], "limit=100")
    assert slugs(answer) == [f"team-{number:02}" for number in range(100)]
    assert answer["pagination"] == {"count": 100, "next": None, "prev": None}
