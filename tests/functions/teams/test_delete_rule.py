"""DELETE /v1/teams/{idOrSlug}/rules/{ruleId}"""

from larder import clock
from larder.audit.service import read_entries
from larder.trust.rules import list_rules
from tests.functions.teams.people import Person, outcome
from tests.functions.teams.rules import RULES, made
from tests.requests import Cloud


def test_a_rule_is_deleted_once(cloud: Cloud, ada: Person) -> None:
    rule, other = made(cloud), made(cloud, provider="gitlab", repository="acme/web")
    path = f"{RULES}/{rule.id}"
    replies = [ada.send("DELETE", path) for _ in range(3)]
    assert [outcome(reply) for reply in replies] == [(200, "")] + [(404, "rule_not_found")] * 2
    assert list_rules(cloud.team.id) == [other]
    entries = read_entries(cloud.team.id, limit=10, now=clock.now()).entries
    removed = [(entry.subject, entry.name) for entry in entries if entry.action == "rule_removed"]
    assert removed == [(rule.id, rule.name)]
