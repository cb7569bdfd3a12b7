"""PATCH /v1/teams/{idOrSlug}/rules/{ruleId}"""

from typing import Any

import pytest

from larder import clock
from larder.audit.service import read_entries
from tests.functions.teams.people import Person, outcome
from tests.functions.teams.rules import IDS, RULES, made
from tests.requests import Cloud


def test_only_what_the_body_names_changes(cloud: Cloud, ada: Person) -> None:
    rule = made(cloud)
    change = {"name": "docs", "trusted": {"refs": ["refs/heads/x"]}, "others": "read"}
    changed = ada.send("PATCH", f"{RULES}/{rule.id}", json_body=change).json
    assert (changed["name"], changed["others"], changed["version"]) == ("docs", "read", 2)
    assert changed["trusted"]["refs"] == ["refs/heads/x"]
    assert changed["trusted"]["events"] == list(rule.trusted.events)
    (entry,) = read_entries(cloud.team.id, limit=1, now=clock.now()).entries
    assert (entry.action, entry.subject) == ("rule_changed", rule.id)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "no_values_to_update"),
        ({"id": "x"}, "no_values_to_update"),
        ({"trusted": {"events": ["issues"]}}, "bad_request"),
    ],
)
def test_400(cloud: Cloud, ada: Person, body: dict[str, Any], code: str) -> None:
    reply = ada.send("PATCH", f"{RULES}/{made(cloud).id}", json_body=body)
    assert outcome(reply) == (400, code)


def test_404_for_a_rule_that_does_not_exist(ada: Person) -> None:
    reply = ada.send("PATCH", f"{RULES}/rule_{'a' * 27}", json_body={"enabled": False})
    assert outcome(reply) == (404, "rule_not_found")


def test_409_for_a_change_that_makes_a_rule_do_what_another_does(cloud: Cloud, ada: Person) -> None:
    first, second = made(cloud), made(cloud, provider="github", pinned=IDS, lifetime_s=600)
    lifetime = {"lifetimeSeconds": 600}
    refused = ada.send("PATCH", f"{RULES}/{first.id}", json_body=lifetime)
    assert outcome(refused) == (409, "rule_exists")
    assert f"({second.id})" in refused.message
    other = {**lifetime, "others": "read"}
    assert ada.send("PATCH", f"{RULES}/{first.id}", json_body=other).status == 200
    assert ada.send("PATCH", f"{RULES}/{second.id}", json_body={"name": "web"}).status == 200


def test_409_if_a_rule_is_enabled_that_does_what_another_does(cloud: Cloud, ada: Person) -> None:
    disabled = f"{RULES}/{made(cloud).id}"
    assert ada.send("PATCH", disabled, json_body={"enabled": False}).status == 200
    made(cloud)
    assert outcome(ada.send("PATCH", disabled, json_body={"enabled": True})) == (409, "rule_exists")
    assert ada.send("PATCH", disabled, json_body={"name": "old"}).status == 200
