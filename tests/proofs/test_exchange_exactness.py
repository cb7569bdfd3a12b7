"""Rules and exchanges under parallel requests, on the local DynamoDB server."""

from collections import Counter
from dataclasses import replace
from functools import partial

import pytest

from larder import clock
from larder.api_keys.keys import list_keys
from larder.errors import IdTokenSpent, RuleExists, RuleLimitReached, RuleNotFound
from larder.trust import rules
from larder.trust.exchange import exchange
from larder.trust.models import ExchangeRequest, NewRule, Others, Rule, RuleChange
from tests.issuer import ORIGIN, Issuer, github_claims
from tests.proofs.overlapping import Overlap, all_at_once, every_overlap, outcome
from tests.requests import Cloud

pytestmark = pytest.mark.slow

PARALLEL = 20
RULE = NewRule(provider="github", pinned={"repository_id": "74", "repository_owner_id": "65"})


def added(cloud: Cloud, new: NewRule = RULE) -> Rule:
    return rules.create_rule(cloud.team.id, new, by=None, origin=ORIGIN, now=clock.now())


def numbered(number: int) -> NewRule:
    return NewRule(provider="github", repository=f"acme/web-{number}")


@every_overlap
def test_16_an_id_token_creates_one_key(new_team: Cloud, overlap: Overlap) -> None:
    issuer = Issuer()
    issuer.publish()
    rule = added(new_team, NewRule(provider="github", repository="acme/web"))
    asked = ExchangeRequest(team=new_team.team.id, id_token=issuer.mint(github_claims()))

    def send() -> object:
        return exchange(asked, origin=ORIGIN, client=new_team.team.id, now=clock.now())

    done = all_at_once([outcome(send)] * PARALLEL, overlap)
    answers = Counter(one.answer for one in done)
    assert answers == {"done": 1, IdTokenSpent.__name__: PARALLEL - 1}
    (key,) = list_keys(rule.id)
    pinned = rules.find_rule(new_team.team.id, rule.id)
    assert (pinned.pending_until, pinned.version, key.rule_version) == (None, 2, 2)


@every_overlap
def test_the_limit_of_rules_is_exact(new_team: Cloud, overlap: Overlap) -> None:
    for number in range(rules.MAX_RULES - 2):
        added(new_team, numbered(number))
    more = [numbered(rules.MAX_RULES + number) for number in range(6)]
    done = all_at_once([outcome(partial(added, new_team, one)) for one in more], overlap)
    answers = Counter(one.answer for one in done)
    assert answers == {"done": 2, RuleLimitReached.__name__: 4}
    assert len(rules.list_rules(new_team.team.id)) == rules.MAX_RULES


@every_overlap
def test_equal_rules_are_added_once(new_team: Cloud, overlap: Overlap) -> None:
    done = all_at_once([outcome(lambda: added(new_team))] * 6, overlap)
    answers = Counter(one.answer for one in done)
    assert answers == {"done": 1, RuleExists.__name__: 5}
    assert len(rules.list_rules(new_team.team.id)) == 1


@every_overlap
def test_two_rules_are_not_changed_into_the_same(new_team: Cloud, overlap: Overlap) -> None:
    lifetimes = (600, 1200, 1800)
    made = [added(new_team, replace(RULE, lifetime_s=lifetime)) for lifetime in lifetimes]

    def changed(rule: Rule) -> object:
        to = RuleChange(lifetime_s=3600)
        return rules.change_rule(new_team.team.id, rule.id, to, by=None, now=clock.now())

    done = all_at_once([outcome(partial(changed, one)) for one in made], overlap)
    assert Counter(one.answer for one in done) == {"done": 1, RuleExists.__name__: 2}


@every_overlap
def test_no_change_of_a_rule_is_lost_and_one_request_deletes_it(new_team: Cloud, overlap: Overlap) -> None:
    team_id, rule = new_team.team.id, added(new_team)
    changes = [RuleChange(name="a"), RuleChange(others=Others.READ), RuleChange(lifetime_s=600)]

    def changed(change: RuleChange) -> object:
        return rules.change_rule(team_id, rule.id, change, by=None, now=clock.now())

    done = all_at_once([outcome(partial(changed, change)) for change in changes], overlap)
    assert {one.answer for one in done} == {"done"}
    found = rules.find_rule(team_id, rule.id)
    assert (found.name, found.others, found.lifetime_s) == ("a", Others.READ, 600)
    assert found.version == 4
    deleted = all_at_once([outcome(lambda: rules.delete_rule(team_id, rule.id, by=None))] * 4, overlap)
    assert Counter(one.answer for one in deleted) == {"done": 1, RuleNotFound.__name__: 3}
