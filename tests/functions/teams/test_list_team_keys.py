"""GET /v1/teams/{idOrSlug}/keys"""

import pytest

from tests.functions.teams.people import KEYS, Person, outcome, team_key
from tests.requests import Cloud


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
