"""GET /v2/teams/{idOrSlug}"""

import pytest

from larder import clock
from larder.accounts.sessions import start_session
from larder.clock import to_iso, to_ms
from larder.teams.members import add_member, remove_member
from larder.teams.models import CachingStatus, Role
from larder.teams.state import change_state
from tests.functions.teams.conftest import co_owner
from tests.requests import Cloud, Reply, Sender


def outcome(reply: Reply) -> tuple[int, str]:
    return reply.status, reply.code


@pytest.mark.parametrize("named_by", ["id", "slug"])
def test_the_callers_team(cloud: Cloud, personal: Sender, named_by: str) -> None:
    session = Sender(start_session(cloud.user, now=clock.now())[1])
    for send in (cloud.send, personal, session):
        reply = send("GET", f"/v2/teams/{getattr(cloud.team, named_by)}")
        assert reply.status == 200
        assert reply.json == {
            "id": cloud.team.id,
            "slug": "acme",
            "name": "Acme",
            "createdAt": to_ms(cloud.team.created_at),
            "created": to_iso(cloud.team.created_at),
            "updatedAt": to_ms(cloud.team.created_at),
            "creatorId": cloud.user.id,
            "avatar": None,
            "description": None,
            "stagingPrefix": "",
            "formerSlugs": [],
            "remoteCaching": {"enabled": True},
            "runInputs": "names",
            "buildHourCents": 0,
            "membership": {
                "uid": cloud.user.id,
                "teamId": cloud.team.id,
                "role": "OWNER",
                "confirmed": True,
                "createdAt": to_ms(cloud.team.created_at),
                "created": to_ms(cloud.team.created_at),
            },
        }


@pytest.mark.parametrize("role", list(Role))
def test_the_reply_has_the_callers_role(cloud: Cloud, personal: Sender, role: Role) -> None:
    co_owner(cloud)
    add_member(cloud.team.id, cloud.user.id, role, now=clock.now())
    assert personal("GET", "/v2/teams/acme").json["membership"]["role"] == role.value


@pytest.mark.parametrize("caching", ["enabled", "disabled", "paused"])
def test_the_reply_shows_whether_caching_is_enabled(cloud: Cloud, personal: Sender, caching: str) -> None:
    change_state(cloud.team.id, caching=CachingStatus(caching))
    answer = personal("GET", "/v2/teams/acme").json
    assert answer["remoteCaching"] == {"enabled": caching == "enabled"}


def test_another_users_team_looks_like_an_unknown_team(cloud: Cloud, stranger: Sender) -> None:
    unknown = stranger("GET", "/v2/teams/nobody")
    assert outcome(unknown) == (404, "team_not_found")
    for name in (cloud.team.id, "acme", "team_doesnotexist"):
        reply = stranger("GET", f"/v2/teams/{name}")
        assert (reply.status, reply.body) == (404, unknown.body)


def test_404_immediately_after_leaving_the_team(cloud: Cloud, personal: Sender) -> None:
    co_owner(cloud)
    remove_member(cloud.team.id, cloud.user.id, by=None)
    assert outcome(personal("GET", "/v2/teams/acme")) == (404, "team_not_found")
