"""GET /v1/teams/{idOrSlug}/keys"""

import pytest

from larder import clock
from larder.api_keys.models import ApiKey, NewKey
from larder.api_keys.service import create_key
from tests.functions.teams.people import Person, outcome, signed_in
from tests.requests import Cloud

KEYS = "/v1/teams/acme/keys"
STATUS = "/v8/artifacts/status"


@pytest.fixture
def ada(cloud: Cloud) -> Person:
    return signed_in(cloud.user)


def team_key(cloud: Cloud, person: Person) -> tuple[ApiKey, str]:
    new = NewKey(user_id=person.user.id, team_id=cloud.team.id, name="ci")
    return create_key(new, now=clock.now())


def test_the_list_has_pages(cloud: Cloud, ada: Person) -> None:
    made = {cloud.key.id, *(team_key(cloud, ada)[0].id for _ in range(4))}
    seen: list[str] = []
    following: int | None = 0
    while following is not None:
        page = ada.send("GET", f"{KEYS}?limit=2&offset={following}").json
        seen += [key["id"] for key in page["keys"]]
        following = page["pagination"]["next"]
    assert (len(seen), set(seen)) == (5, made)


@pytest.mark.parametrize("query", ["limit=0", "limit=101", "offset=-1", "offset=100000"])
def test_400_for_a_page_that_cannot_be(ada: Person, query: str) -> None:
    assert outcome(ada.send("GET", f"{KEYS}?{query}")) == (400, "bad_request")
