"""`larder trust` and `larder issuers`."""

import json
from pathlib import Path

import pytest

from larder import clock
from larder.accounts.email_jobs import EmailJob, MakerLeft, TrustGiven, parse_job
from larder.teams.models import Member, Role
from larder.teams.protection import read_protection
from larder.trust.models import NewRule
from larder.trust.rules import create_rule, list_rules
from tests.functions.teams.people import joined
from tests.issuer import GITHUB, ORIGIN, github_claims
from tests.requests import Cloud

from .conftest import Larder
from .fake_aws import FakeAws

pytestmark = pytest.mark.usefixtures("mail_function")

OWN = "https://gitlab.acme.example"


def jobs_of(mail_function: FakeAws) -> list[EmailJob]:
    return [parse_job(json.loads(body)) for body in mail_function.bodies]


def test_add_list_show_set_and_remove(larder: Larder, cloud: Cloud) -> None:
    made = larder.json("trust", "add", "acme", "--github", "acme/web", "--lifetime", "30m")
    assert (made["state"], made["name"], made["lifetime_s"]) == ("pending", "web", 1800)
    (listed,) = larder.json("trust", "list", "acme")
    assert listed == larder.json("trust", "show", "acme", made["id"]) == made
    assert made["replace_events"] == ["workflow_dispatch"]
    change = (
        "--replace-event", "push", "--ref", "refs/heads/x", "--ref", "refs/heads/y", "--others", "read",
        "--disable",
    )  # fmt: skip
    changed = larder.json("trust", "set", "acme", made["id"], *change)
    assert (changed["refs"], changed["others"]) == (["refs/heads/x", "refs/heads/y"], "read")
    assert (changed["state"], changed["replace_events"]) == ("disabled", ["push"])
    removed = larder.json("trust", "remove", "acme", made["id"][:12])
    assert removed == {"id": made["id"], "name": "web", "deleted": True}
    assert list_rules(cloud.team.id) == []
    assert "larder trust add acme" in larder("trust", "list", "acme").output


def test_the_first_rule_protects_its_team(larder: Larder, cloud: Cloud) -> None:
    add = ("trust", "add", "acme", "--github", "acme/web")
    assert "acme is now protected" in larder(*add).stderr
    assert read_protection(cloud.team.id).on is True
    assert larder("trust", "add", "acme", "--github", "acme/docs").stderr == ""


def test_the_list_names_who_made_a_rule(larder: Larder, cloud: Cloud, mail_function: FakeAws) -> None:
    larder("trust", "add", "acme", "--github", "acme/web", "--no-protect")
    adam = joined(cloud, Role.ADMIN, "adam").user
    joined(cloud, Role.OWNER, "olga")
    by = Member(user_id=adam.id, role=Role.ADMIN, joined_at=clock.now())
    new = NewRule(provider="github", repository="acme/docs")
    create_rule(cloud.team.id, new, by=by, origin=ORIGIN, now=clock.now())
    listed = larder.json("trust", "list", "acme")
    assert [one["made_by"] for one in listed] == ["the operator", adam.email]
    larder("teams", "remove-member", "acme", adam.email)
    assert larder.json("trust", "list", "acme")[1]["made_by"] == f"{adam.email}, who left"
    left = [job for job in jobs_of(mail_function) if isinstance(job, MakerLeft)]
    assert {(job.maker, *job.rules) for job in left} == {(adam.email, listed[1]["id"])}


def test_the_owners_get_an_email_of_the_operators_rule(larder: Larder, cloud: Cloud, mail_function: FakeAws) -> None:
    olga = joined(cloud, Role.OWNER, "olga").user
    made = larder.json("trust", "add", "acme", "--github", "acme/web", "--no-protect")
    given = [job for job in jobs_of(mail_function) if isinstance(job, TrustGiven)]
    assert {(job.user_id, job.rule_id, job.made_by) for job in given} == {
        (user_id, made["id"], "") for user_id in (cloud.user.id, olga.id)
    }


def test_a_rule_that_is_there_is_not_added_again(larder: Larder, cloud: Cloud) -> None:
    add = ("trust", "add", "acme", "--github", "acme/web")
    made = larder.json(*add)
    refusal = larder.refusal(*add, "--name", "again")
    assert refusal.startswith(f"The rule web ({made['id']}) does the same for the same jobs.")
    assert [rule.id for rule in list_rules(cloud.team.id)] == [made["id"]]


def test_a_warning_names_a_rule_for_the_same_jobs(larder: Larder, cloud: Cloud) -> None:
    add = ("trust", "add", "acme", "--github", "acme/web", "--no-protect")
    first = larder.json(*add)
    assert larder(*add, "--ref", "refs/heads/next").stderr.startswith(
        f"Warning: the rule web ({first['id']}) accepts the same jobs."
    )
    (second,) = (rule.id for rule in list_rules(cloud.team.id) if rule.id != first["id"])
    change = ("trust", "set", "acme", second)
    assert f"({first['id']}) accepts" in larder(*change, "--others", "read").stderr
    assert larder(*change, "--disable").stderr == ""


def test_no_protect_keeps_the_team_as_it_is(larder: Larder, cloud: Cloud) -> None:
    add = ("trust", "add", "acme", "--github", "acme/web", "--no-protect")
    assert larder(*add).stderr == ""
    assert read_protection(cloud.team.id).on is False


def test_another_issuer_and_its_claims(larder: Larder, cloud: Cloud) -> None:
    by_name = ("trust", "add", "acme", "--gitlab", "acme/web", "--issuer", OWN)
    assert "larder issuers add" in larder.refusal(*by_name)
    larder("issuers", "add", OWN)
    assert larder.json(*by_name)["issuer"] == OWN
    made = larder.json(
        *("trust", "add", "acme", "--provider", "generic", "--issuer", OWN, "--pin", "sub=web"),
        *("--claim", "branch=main", "--claim", "branch=next", "--scope-claim", "branch"),
    )
    assert (made["claims"], made["others"]) == ({"branch": ["main", "next"]}, "scope")
    (issuer,) = larder.json("issuers", "list")
    assert (issuer["url"], issuer["added"], issuer["keys"]) == (OWN, True, 0)
    larder("issuers", "remove", OWN)
    assert "was not added" in larder.refusal("issuers", "remove", OWN)
    assert larder.refusal("issuers", "add", "http://gitlab.com").startswith("issuer: must be an https")


def test_explain(larder: Larder, cloud: Cloud, tmp_path: Path) -> None:
    larder("trust", "add", "acme", "--github", "acme/web")
    claims = {**github_claims(ref="refs/heads/x"), "iss": GITHUB}
    file = tmp_path / "claims.json"
    file.write_text(json.dumps({**claims, "aud": larder.json("trust", "list", "acme")[0]["audience"]}))
    (explained,) = larder.json("trust", "explain", "acme", str(file))
    assert (explained["accepted"], explained["trusted"]) == (True, False)
    assert explained["why"] == "ref is refs/heads/x, not refs/heads/main"
    larder("trust", "add", "acme", "--gitlab", "acme/" + "w" * 40)
    lines = larder("trust", "explain", "acme", str(file)).output.splitlines()
    assert lines[:3] == [
        f"web ({explained['rule']})",
        f"  - gives a token, not trusted, scope {explained['scope']}",
        "  - ref is refs/heads/x, not refs/heads/main",
    ]
    assert "  - gives no token" in lines
    assert "  - iss is https://token.actions.githubusercontent.com, not https://gitlab.com" in lines
    assert [line for line in lines if len(line) > 80] == []
    file.write_text("eyJ.eyJ.x")
    assert "claims as a JSON object" in larder.refusal(*("trust", "explain", "acme", str(file)), status=2)


def test_wrong_usage(larder: Larder, cloud: Cloud) -> None:
    for arguments in (
        ("trust", "add", "acme"),
        ("trust", "add", "acme", "--github", "a/b", "--gitlab", "a/b"),
        ("trust", "add", "acme", "--github", "a/b", "--pin", "repository_id"),
        ("trust", "set", "acme", "rule_x"),
    ):
        larder.refusal(*arguments, status=2)
    assert "no rule with this id" in larder.refusal("trust", "show", "acme", "rule_x")
