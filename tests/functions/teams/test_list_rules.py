"""GET /v1/teams/{idOrSlug}/rules"""

from larder.teams.models import Role
from tests.functions.teams.people import Person, joined, key_of
from tests.functions.teams.rules import RULES, made
from tests.requests import Cloud


def test_every_member_sees_the_rules_of_the_team(cloud: Cloud, ada: Person) -> None:
    rules = [made(cloud).id, made(cloud, provider="gitlab", repository="acme/web").id]
    viewer = joined(cloud, Role.VIEWER)
    for send in (ada.send, viewer.send, key_of(viewer, {"teams": ("read",)})):
        assert {rule["id"] for rule in send("GET", RULES).json["rules"]} == set(rules)
