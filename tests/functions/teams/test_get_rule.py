"""GET /v1/teams/{idOrSlug}/rules/{ruleId}"""

import pytest

from larder import clock
from larder.teams.teams import create_team
from tests.functions.teams.people import Person, outcome
from tests.functions.teams.rules import IDS, RULES, made
from tests.requests import Cloud


def test_one_rule(cloud: Cloud, ada: Person) -> None:
    rule = made(cloud)
    found = ada.send("GET", f"{RULES}/{rule.id}").json
    assert (found["id"], found["pinned"], found["version"]) == (rule.id, IDS, 1)


@pytest.mark.parametrize("rule_id", ["x", "rule_" + "a" * 27, "member", "%00", "rule%23"])
def test_404_for_a_rule_that_does_not_exist(ada: Person, rule_id: str) -> None:
    assert outcome(ada.send("GET", f"{RULES}/{rule_id}")) == (404, "rule_not_found")


def test_404_for_a_rule_of_another_team(cloud: Cloud, ada: Person) -> None:
    create_team("Other", "other", owner_user_id=cloud.user.id, now=clock.now())
    path = f"/v1/teams/other/rules/{made(cloud).id}"
    assert outcome(ada.send("GET", path)) == (404, "rule_not_found")
