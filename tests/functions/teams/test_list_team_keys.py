"""GET /v1/teams/{idOrSlug}/keys"""

from tests.functions.teams.people import KEYS, Person, team_key
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
