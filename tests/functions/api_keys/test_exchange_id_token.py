"""POST /login/oauth/token. tests/trust has the attacks."""

import pytest

from larder import clock
from larder.accounts.service import create_user
from larder.api_keys import repository as key_store
from larder.api_keys.keys import find_key
from larder.audit.service import tokens
from larder.errors import Unauthenticated
from larder.hashing import random_id
from larder.teams.members import add_member
from larder.teams.models import Role
from larder.teams.teams import create_team, delete_team
from larder.trust.models import Others, RuleChange
from larder.trust.rules import change_rule, find_rule
from tests.functions.teams.people import newcomer, outcome
from tests.functions.teams.rules import IDS, made
from tests.issuer import Issuer, github_claims
from tests.mailbox import Mailbox, link_in
from tests.requests import Cloud, Reply, Sender
from tests.trust.exchanging import REVOKE, TOKEN, exchange, posted

HASH = "/v8/artifacts/08e4547d5347b63f"


def issuer() -> Issuer:
    github = Issuer()
    github.publish()
    return github


def test_a_job_gets_a_token_for_an_hour(cloud: Cloud) -> None:
    rule, github = made(cloud), issuer()
    reply = exchange(github.mint(github_claims()))
    assert reply.status == 200
    assert reply.headers["cache-control"] == "no-store"
    token = reply.json["access_token"]
    assert token.startswith("larder_ci_")
    assert reply.json == {
        "access_token": token,
        "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
        "token_type": "Bearer",
        "expires_in": 3600,
        "scope": "artifacts:read artifacts:write",
        "larder": {"team": "acme", "rule": rule.id, "cacheScope": "shared", "name": "acme/web push refs/heads/main"},
    }
    send = Sender(token, slug="acme")
    assert send("PUT", HASH, body=b"built").status == 202
    assert send("GET", HASH).body == b"built"
    assert send("GET", "/v8/artifacts/status").json == {"status": "enabled"}


def test_what_is_stored(cloud: Cloud) -> None:
    rule = made(cloud)
    token = exchange(issuer().mint(github_claims())).json["access_token"]
    (key,) = key_store.list_by_holder(rule.id)
    assert (key.holder_id, key.rule_id, key.team_id) == (rule.id, rule.id, cloud.team.id)
    with pytest.raises(Unauthenticated):
        _ = key.user_id
    assert (key.scope, key.permissions) == ("shared", {"artifacts": ("read", "write")})
    assert key.run is not None
    assert key.run["url"] == "https://github.com/acme/web/actions/runs/9914400"
    assert token not in str(key)
    entry = tokens([key.id])[key.id]
    assert (entry.action, entry.subject, entry.details["ref"]) == ("token_issued", rule.id, "refs/heads/main")
    assert find_rule(cloud.team.id, rule.id).last_exchange_at is not None
    # Tokens of jobs are not among the keys that people manage.
    assert list(key_store.bound_to(cloud.team.id)) == [cloud.key.key_hash]


def test_the_writer_of_an_artifact_is_the_rule(cloud: Cloud, manage: Sender, removal_jobs: object) -> None:
    rule = made(cloud)
    token = exchange(issuer().mint(github_claims())).json["access_token"]
    assert Sender(token)("PUT", HASH, body=b"built").status == 202
    writer = manage("GET", HASH.replace("v8", "v1")).json["writer"]
    assert writer["userId"] == rule.id
    reply = manage.asking(writer=rule.id)("DELETE", "/v1/artifacts")
    assert reply.status == 202


def test_a_job_can_ask_for_less(cloud: Cloud) -> None:
    made(cloud)
    reply = exchange(issuer().mint(github_claims()), scope="artifacts:read")
    assert reply.json["scope"] == "artifacts:read"
    token = Sender(reply.json["access_token"], slug="acme")
    assert outcome(token("PUT", HASH, body=b"x")) == (403, "read_only")
    assert token("GET", HASH).status == 404


def test_others_read_or_get_nothing(cloud: Cloud) -> None:
    rule, github = made(cloud), issuer()
    claims = github_claims(event_name="pull_request", ref="refs/pull/7/merge")

    def exchanged(others: Others) -> Reply:
        change = RuleChange(others=others)
        change_rule(cloud.team.id, rule.id, change, by=None, now=clock.now())
        return exchange(github.mint(claims))

    assert exchanged(Others.READ).json["scope"] == "artifacts:read"
    refused = exchanged(Others.REFUSE)
    assert refused.status == 400
    assert "trusted jobs only" in refused.json["error_description"]


def test_the_team_by_its_id_and_by_the_other_names_of_the_field(cloud: Cloud) -> None:
    made(cloud)
    github = issuer()
    for name, team in (("team_id", cloud.team.id), ("teamId", cloud.team.id), ("slug", "acme")):
        form = {"team_id_or_slug": "", name: team}
        assert exchange(github.mint(github_claims()), **form).status == 200


def test_a_slug_that_leads_to_another_team_than_the_id_is_refused(cloud: Cloud) -> None:
    made(cloud)
    github = issuer()
    other = create_team("Other", "other", owner_user_id=cloud.user.id, now=clock.now())
    both = {"team_id_or_slug": "acme", "team_id": cloud.team.id}
    assert exchange(github.mint(github_claims()), **both).json["larder"]["team"] == "acme"
    for team_id in (other.id, "team_nosuchteam"):
        refused = exchange(github.mint(github_claims()), **{**both, "team_id": team_id})
        assert refused.status == 400
        assert "no rule of this team" in refused.json["error_description"]
    twice = {"team_id_or_slug": other.id, "team_id": cloud.team.id}
    assert exchange(github.mint(github_claims()), **twice).status == 400


def test_the_slug_of_a_deleted_team_gives_its_ci_no_token_of_another_team(cloud: Cloud) -> None:
    made(cloud)
    github = issuer()
    assert exchange(github.mint(github_claims())).status == 200
    delete_team(cloud.team.id, by=None, now=clock.now())
    mallory = newcomer("mallory")
    taken = mallory.send("POST", "/v1/teams", json_body={"slug": "acme"})
    assert outcome(taken) == (409, "slug_taken")
    assert exchange(github.mint(github_claims())).status == 400


def test_the_form_of_the_hosted_services_action(cloud: Cloud) -> None:
    """The fields that vercel/setup-turborepo-remote-cache-action sends."""
    rule = made(cloud)
    form = {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "client_id": "cl_7tKpXv2nQ",
        "subject_token": issuer().mint(github_claims()),
        "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
        "requested_token_type": "urn:ietf:params:oauth:token-type:access_token",
        "team_id_or_slug": "acme",
        "policy_id": rule.id,
    }
    reply = posted(TOKEN, form)
    assert reply.json["access_token"].startswith("larder_ci_")
    ended = {"client_id": "cl_7tKpXv2nQ", "token": reply.json["access_token"]}
    assert posted(REVOKE, {**ended, "token_type_hint": "access_token"}).status == 200


def test_the_most_precise_rule_decides_and_of_two_alike_none(cloud: Cloud) -> None:
    github = issuer()
    owners = made(cloud, provider="github", pinned={"repository_owner_id": "65"})
    first = made(cloud)
    assert exchange(github.mint(github_claims())).json["larder"]["rule"] == first.id
    other = github_claims(repository_id="80")
    assert exchange(github.mint(other)).json["larder"]["rule"] == owners.id
    second = made(cloud, provider="github", pinned=IDS, lifetime_s=600)
    refused = exchange(github.mint(github_claims()))
    assert refused.status == 400
    assert "policy_id" in refused.json["error_description"]
    chosen = exchange(github.mint(github_claims()), policy_id=second.id)
    assert chosen.json["larder"]["rule"] == second.id
    assert exchange(github.mint(github_claims()), policy_id=random_id()).status == 400


def test_the_lifetime_of_the_rule(cloud: Cloud) -> None:
    made(cloud, provider="github", pinned={"repository_owner_id": "65"}, lifetime_s=300)
    reply = exchange(issuer().mint(github_claims()))
    assert reply.json["expires_in"] == 300
    (key,) = key_store.list_by_holder(reply.json["larder"]["rule"])
    assert key.expires_at is not None
    assert (key.expires_at - key.created_at).total_seconds() == 300
    assert find_key(key.id) == key


def test_the_first_token_of_a_repository_is_mailed_to_the_owners(cloud: Cloud, mailbox: Mailbox) -> None:
    owner = create_user("olga@acme.example", "Olga", email_verified=True, now=clock.now())
    add_member(cloud.team.id, owner.id, Role.OWNER, now=clock.now())
    rule, github = made(cloud, provider="github", repository="acme/web"), issuer()
    for _ in range(2):
        assert exchange(github.mint(github_claims())).status == 200
    assert len(mailbox.jobs) == 2
    (message,) = mailbox.deliver()
    assert (message.to, "A rule of acme is in use" in message.subject) == (owner.email, True)
    assert f"the rule {rule.id} of the team acme" in message.text
    assert link_in(message) == "/console/t/acme/protection"
