"""POST /v1/teams/{idOrSlug}/rules"""

from typing import Any

import pytest

from larder import clock
from larder.audit.service import read_entries
from larder.issuers.service import add_issuer
from larder.trust.models import NewRule
from larder.trust.rules import MAX_RULES, PENDING, create_rule, list_rules
from tests.functions.teams.people import Person, outcome
from tests.functions.teams.rules import IDS, RULES, made
from tests.issuer import ORIGIN
from tests.requests import Cloud

pytestmark = pytest.mark.usefixtures("mailbox")

PRESET = {"provider": "github", "repository": "acme/web"}


def test_a_rule_by_name_waits_for_its_ids(cloud: Cloud, ada: Person) -> None:
    reply = ada.send("POST", RULES, json_body=PRESET)
    assert reply.status == 200
    rule = reply.json
    assert rule["trusted"] == {
        "refs": ["refs/heads/main"],
        "events": ["push", "schedule", "workflow_dispatch", "merge_group"],
        "requireProtectedRef": False,
        "claims": {},
        "replaceEvents": ["workflow_dispatch"],
    }
    assert (rule["state"], rule["pinned"], rule["others"]) == ("pending", {}, "scope")
    assert rule["pendingUntil"] - rule["createdAt"] == 7 * 86_400_000
    (stored,) = list_rules(cloud.team.id)
    assert (stored.id, len(stored.id), stored.name) == (rule["id"], 32, "web")
    entries = read_entries(cloud.team.id, limit=2, now=clock.now()).entries
    assert ("rule_added", rule["id"]) in [(entry.action, entry.subject) for entry in entries]


def test_a_rule_by_ids_is_active(ada: Person) -> None:
    for pinned in (IDS, {"repository_owner_id": "65"}):
        sent = {"provider": "github", "pinned": pinned, "name": "web"}
        assert ada.send("POST", RULES, json_body=sent).json["state"] == "active"


def test_gitlab_needs_a_protected_ref(ada: Person) -> None:
    sent = {"provider": "gitlab", "repository": "acme/web"}
    trusted = ada.send("POST", RULES, json_body=sent).json["trusted"]
    assert trusted["requireProtectedRef"] is True
    assert trusted["events"] == ["push", "schedule", "web"]
    assert trusted["replaceEvents"] == ["web"]


GENERIC = {
    "provider": "jenkins",
    "issuer": "https://ci.acme.example/oidc",
    "pinned": {"sub": "https://ci.acme.example/job/web/"},
    "trusted": {"claims": {"branch": ["main"]}},
}


def test_events_that_are_not_trusted_replace_nothing(cloud: Cloud, ada: Person) -> None:
    rule = ada.send("POST", RULES, json_body=trusted(events=["push"])).json
    assert rule["trusted"]["replaceEvents"] == []
    rule = ada.send("POST", RULES, json_body=PRESET).json
    path = f"{RULES}/{rule['id']}"
    change = {"trusted": {"events": ["push", "schedule"]}}
    assert ada.send("PATCH", path, json_body=change).json["trusted"]["replaceEvents"] == []
    change = {"trusted": {"replaceEvents": ["schedule"]}}
    changed = ada.send("PATCH", path, json_body=change).json["trusted"]
    assert (changed["replaceEvents"], changed["events"]) == (["schedule"], ["push", "schedule"])


def test_another_issuer_has_to_be_accepted_first(ada: Person) -> None:
    refused = ada.send("POST", RULES, json_body=GENERIC)
    assert (refused.status, "larder issuers add" in refused.message) == (400, True)
    add_issuer("https://ci.acme.example/oidc", None, origin=ORIGIN)
    rule = ada.send("POST", RULES, json_body=GENERIC).json
    assert (rule["others"], rule["trusted"]["refs"]) == ("read", [])
    own = {**GENERIC, "scopeClaim": "branch"}
    assert ada.send("POST", RULES, json_body=own).json["others"] == "scope"


def test_409_for_a_rule_that_does_what_another_does(cloud: Cloud, ada: Person) -> None:
    first = ada.send("POST", RULES, json_body=PRESET).json
    events = [*reversed(first["trusted"]["events"])]
    for same in (PRESET, {**PRESET, "name": "again", "trusted": {"events": events}}):
        refused = ada.send("POST", RULES, json_body=same)
        assert outcome(refused) == (409, "rule_exists")
        assert f"The rule web ({first['id']})" in refused.message
    assert [rule.id for rule in list_rules(cloud.team.id)] == [first["id"]]


def test_409_for_a_rule_too_many(cloud: Cloud, ada: Person) -> None:
    for number in range(MAX_RULES):
        made(cloud, provider="github", repository=f"acme/{number}")
    refused = ada.send("POST", RULES, json_body=PRESET)
    assert outcome(refused) == (409, "rule_limit_reached")
    assert len(list_rules(cloud.team.id)) == MAX_RULES


@pytest.mark.parametrize(
    "other",
    [
        {"repository": "Acme/web"},
        {"issuer": "https://token.actions.githubusercontent.com/acme"},
        {"audience": "https://other.example"},
        {"pinned": IDS},
        {"trusted": {"refs": ["refs/heads/next"]}},
        {"trusted": {"events": ["push"]}},
        {"trusted": {"replaceEvents": ["schedule"]}},
        {"trusted": {"requireProtectedRef": True}},
        {"trusted": {"claims": {"environment": ["production"]}}},
        {"others": "read"},
        {"lifetimeSeconds": 300},
        {"lifetimeSeconds": 21_600},
    ],
)
def test_a_rule_that_differs_from_another(ada: Person, other: dict[str, Any]) -> None:
    assert ada.send("POST", RULES, json_body=PRESET).status == 200
    sent = {**PRESET, **other}
    if "pinned" in other:
        del sent["repository"]
    assert ada.send("POST", RULES, json_body=sent).status == 200
    assert outcome(ada.send("POST", RULES, json_body=sent)) == (409, "rule_exists")


def test_a_rule_with_ids_is_the_same_as_one_that_waits_for_those_of_its_repository(cloud: Cloud, ada: Person) -> None:
    made(cloud, provider="github", repository="acme/web", pinned=IDS)
    assert outcome(ada.send("POST", RULES, json_body=PRESET)) == (409, "rule_exists")
    other = {"repository_id": "80", "repository_owner_id": "65"}
    replaced = ada.send("POST", RULES, json_body={**PRESET, "pinned": other})
    assert replaced.status == 200
    owners = {**PRESET, "pinned": {"repository_owner_id": "65"}}
    assert ada.send("POST", RULES, json_body=owners).status == 200


def test_a_rule_that_gives_no_tokens_does_not_count(cloud: Cloud, ada: Person) -> None:
    disabled = ada.send("POST", RULES, json_body=PRESET).json
    ada.send("PATCH", f"{RULES}/{disabled['id']}", json_body={"enabled": False})
    assert ada.send("POST", RULES, json_body=PRESET).status == 200
    later = clock.now() + PENDING
    again = NewRule(provider="github", repository="acme/web")
    created = create_rule(cloud.team.id, again, by=None, origin=ORIGIN, now=later)
    assert [rule.id for rule in list_rules(cloud.team.id)][-1] == created.id


def trusted(**changed: Any) -> dict[str, Any]:
    return {**PRESET, "trusted": changed}


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({"provider": "svn"}, "provider"),
        ({}, "provider"),
        ({"provider": "github"}, "repository"),
        ({"provider": "github", "pinned": {"repository_id": "74"}}, "pinned"),
        ({"provider": "github", "pinned": {**IDS, "x": "1"}}, "pinned"),
        ({"provider": "github", "pinned": {"repository_id": 74}}, "pinned.repository_id"),
        ({"provider": "buildkite"}, "pinned"),
        ({"provider": "circleci", "pinned": {}}, "issuer"),
        ({"provider": "generic", "issuer": "https://gitlab.com"}, "pinned"),
        ({"provider": "generic", "issuer": "https://gitlab.com", "pinned": {"iss": "x"}}, "pinned"),
        ({"provider": "generic", "issuer": "https://gitlab.com", "pinned": {"a": "x"}}, "claims"),
        ({**PRESET, "issuer": "http://gitlab.com"}, "issuer"),
        ({**PRESET, "name": "\n"}, "name"),
        ({**PRESET, "repository": "\u00fc"}, "repository"),
        ({**PRESET, "others": "all"}, "others"),
        ({**PRESET, "scopeClaim": "ref"}, "scopeClaim"),
        ({**PRESET, "lifetimeSeconds": 299}, "lifetimeSeconds"),
        ({**PRESET, "lifetimeSeconds": 21_601}, "lifetimeSeconds"),
        (trusted(refs=[]), "refs"),
        (trusted(refs=["main"]), "refs"),
        (trusted(refs=["refs/heads/release/*"]), "refs"),
        (trusted(refs=["refs/heads/a*b"], requireProtectedRef=True), "refs"),
        (trusted(refs=["refs/heads/x"] * 21), "refs"),
        (trusted(events=[]), "events"),
        (trusted(events=["push"], replaceEvents=["schedule"]), "replaceEvents"),
        (trusted(replaceEvents=["pull_request"]), "replaceEvents"),
        (trusted(claims={f"c{n}": ["x"] for n in range(11)}), "claims"),
        (trusted(claims={"aud": ["x"]}), "claims"),
        (trusted(claims={"x": []}), "claims"),
        (
            {
                "provider": "buildkite",
                "pinned": {"pipeline_id": "1", "organization_id": "2"},
                "trusted": {"requireProtectedRef": True},
            },
            "requireProtectedRef",
        ),
    ],
)
def test_400_names_the_field(ada: Person, sent: dict[str, Any], field: str) -> None:
    reply = ada.send("POST", RULES, json_body=sent)
    assert outcome(reply) == (400, "bad_request")
    assert reply.message.startswith(f"{field}: ")
