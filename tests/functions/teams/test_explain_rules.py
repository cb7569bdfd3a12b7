"""POST /v1/teams/{idOrSlug}/rules/explain"""

from typing import Any

from tests.functions.teams.people import Person, outcome
from tests.functions.teams.rules import RULES, made
from tests.issuer import GITHUB, ORIGIN, github_claims
from tests.requests import Cloud


def explained(ada: Person, **changed: Any) -> dict[str, Any]:
    claims = github_claims(**{"iss": GITHUB, "aud": ORIGIN, **changed})
    reply = ada.send("POST", f"{RULES}/explain", json_body={"claims": claims})
    (found,) = reply.json["rules"]
    return dict(found)


def test_a_trusted_job(cloud: Cloud, ada: Person) -> None:
    rule = made(cloud)
    assert explained(ada) == {
        "rule": rule.id,
        "name": rule.name,
        "accepted": True,
        "refused": [],
        "trusted": True,
        "notTrusted": [],
        "permissions": ["artifacts:read", "artifacts:write"],
        "cacheScope": "shared",
    }


def test_why_a_job_is_not_trusted_or_not_accepted(cloud: Cloud, ada: Person) -> None:
    made(cloud)
    pull = explained(ada, event_name="pull_request", ref="refs/pull/7/merge")
    assert (pull["accepted"], pull["trusted"]) == (True, False)
    assert pull["notTrusted"] == [
        "ref is refs/pull/7/merge, not refs/heads/main",
        "event_name is pull_request, not push or schedule or workflow_dispatch or merge_group",
    ]
    other = explained(ada, repository_id="99", aud="x")
    assert (other["accepted"], other["cacheScope"]) == (False, None)
    assert other["refused"] == [f"aud is x, not {ORIGIN}", "repository_id is 99, not 74"]


def test_a_token_is_refused(cloud: Cloud, ada: Person) -> None:
    reply = ada.send("POST", f"{RULES}/explain", json_body={"claims": "eyJ.eyJ.x"})
    assert outcome(reply) == (400, "bad_request")


def test_claims_that_are_not_unicode_are_refused(cloud: Cloud, ada: Person) -> None:
    made(cloud)
    claims = github_claims(iss=GITHUB, aud=ORIGIN, ref="\ud800")
    reply = ada.send("POST", f"{RULES}/explain", json_body={"claims": claims})
    assert outcome(reply) == (400, "bad_request")
