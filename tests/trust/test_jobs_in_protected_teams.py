"""What CI jobs read and write in a protected team, with tokens by real exchanges: attacks by their number."""

from collections.abc import Iterator
from typing import Any

import pytest

from larder import clock
from larder.accounts.access import suspend_user
from larder.accounts.service import create_user
from larder.api_keys.properties import NewKey
from larder.artifacts.rebuild_index import rebuild_index
from larder.audit.service import read_entries
from larder.teams.members import add_member, remove_member
from larder.teams.models import People, Role, Unsigned
from larder.teams.protection import ProtectionChange, change_protection
from larder.trust.models import Others, RuleChange
from larder.trust.rules import change_rule, delete_rule
from tests.direct_uploads import PREFLIGHT, announce, offer, put_object
from tests.functions.teams.people import outcome
from tests.issuer import GITLAB, Issuer, github_claims, gitlab_claims
from tests.larder.artifacts.test_rebuild_index import lose
from tests.proofs.aws_calls import counted
from tests.requests import Sender
from tests.trust.conftest import Trusting, made_rule
from tests.trust.exchanging import revoke
from tests.trust.scene import (
    CLEAN,
    POISON,
    TRUSTED,
    new_key,
    protect,
    protected,
    put,
    read,
    scope_of,
    seconds_later,
    session,
    trusted_key,
)

PULL = {"event_name": "pull_request", "ref": "refs/pull/7/merge"}
OTHER_PULL = {"event_name": "pull_request", "ref": "refs/pull/8/merge"}

preflight_or_not = pytest.mark.parametrize("preflight", [False, True], ids=["PUT", "preflight"])


@pytest.fixture
def safe(trusting: Trusting) -> Iterator[Trusting]:
    """The team, protected."""
    with protected(trusting.cloud):
        yield trusting


def narrow(safe: Trusting, change: RuleChange) -> None:
    change_rule(safe.cloud.team.id, safe.rule.id, change, by=None, now=clock.now())


def check_poisons_nothing(safe: Trusting, job: Sender, *, preflight: bool = False) -> None:
    """What the job stores first is a miss on main, and what it stores last changes nothing."""
    main, laptop = safe.token(), session(safe.cloud)
    put(job, "first", POISON, preflight=preflight)
    assert (read(job, "first"), scope_of(job, "first")) == (POISON, "own")
    assert read(main, "first") is read(laptop, "first") is None
    put(main, "first", CLEAN, preflight=preflight)
    put(main, "last", CLEAN, preflight=preflight)
    put(job, "last", POISON, preflight=preflight)
    for hash in ("first", "last"):
        for reader in (main, laptop, job, safe.token(**OTHER_PULL)):
            assert read(reader, hash) == CLEAN
            assert scope_of(reader, hash) == "shared"


@preflight_or_not
def test_a_scope_has_the_name_of_its_job(safe: Trusting, manage: Sender, preflight: bool) -> None:
    put(safe.token(**PULL), "abc", POISON, preflight=preflight)
    put(safe.token(), "abc", CLEAN, preflight=preflight)
    (scope,) = manage("GET", "/v1/teams/acme/scopes").json["scopes"]
    assert (scope["kind"], scope["userId"]) == ("ci", safe.rule.id)
    assert scope["name"] == "acme/web pull_request refs/pull/7/merge"


@preflight_or_not
def test_an_artifact_names_the_job_that_wrote_it(safe: Trusting, manage: Sender, preflight: bool) -> None:
    put(safe.token(**PULL), "abc", POISON, preflight=preflight)
    put(safe.token(), "abc", CLEAN, preflight=preflight)
    put(session(safe.cloud), "of-ada", POISON)
    listed = manage("GET", "/v1/artifacts?scope=all").json["artifacts"]
    jobs = {one["scope"][0]: one["writer"].get("job") for one in listed}
    assert (jobs["s"]["repository"], jobs["s"]["ref"]) == ("acme/web", "refs/heads/main")
    assert (jobs["c"]["event"], jobs["c"]["ref"]) == ("pull_request", "refs/pull/7/merge")
    assert jobs["s"]["url"].startswith("https://github.com/acme/web/actions/runs/")
    assert jobs["u"] is None
    assert manage("GET", "/v1/artifacts/abc").json["writer"]["job"] == jobs["s"]
    everywhere = manage("GET", "/v1/artifacts/abc?scope=all").json["artifacts"]
    assert [one["writer"]["job"] for one in everywhere] == [jobs["s"], jobs["c"]]


def test_a_list_reads_the_jobs_of_its_writers_at_once(safe: Trusting, manage: Sender) -> None:
    assert manage("GET", "/v1/artifacts").status == 200
    with counted() as without:
        assert manage("GET", "/v1/artifacts").status == 200
    for number in range(3):
        put(safe.token(), f"a{number}", CLEAN)
    with counted() as calls:
        assert manage("GET", "/v1/artifacts").json["pagination"]["count"] == 3
    assert len(calls.made) == len(without.made) + 1


@preflight_or_not
def test_1_a_pull_request_cannot_change_what_main_restores(safe: Trusting, preflight: bool) -> None:
    check_poisons_nothing(safe, safe.token(**PULL), preflight=preflight)


def test_1_succeeds_in_a_team_that_is_not_protected(trusting: Trusting) -> None:
    put(trusting.token(**PULL), "abc", POISON)
    assert read(trusting.token(), "abc") == POISON


def test_2_a_late_upload_of_a_pull_request_stays_in_its_scope(safe: Trusting) -> None:
    main, pull = safe.token(), safe.token(**PULL)
    key = offer(pull, "abc")
    put(main, "abc", CLEAN)
    put_object(key, POISON)
    announce(key)
    for reader in (main, pull, session(safe.cloud)):
        assert read(reader, "abc") == CLEAN


def test_4_an_edited_workflow_stays_in_its_scope(safe: Trusting) -> None:
    workflow = "acme/web/.github/workflows/release.yml@refs/pull/7/merge"
    edited = {**PULL, "environment": "production", "job_workflow_ref": workflow}
    check_poisons_nothing(safe, safe.token(**edited))


@pytest.mark.parametrize(
    "claims",
    [
        {"event_name": "pull_request_target"},
        {"event_name": "workflow_run"},
        {"event_name": "issue_comment"},
        {"ref": "refs/tags/main"},
        {"ref": "refs/heads/main2"},
        {"event_name": "workflow_dispatch", "ref": "refs/heads/evil"},
    ],
    ids=lambda claims: " ".join(claims.values()),
)
def test_5_6_7_other_events_and_refs_stay_in_their_scope(safe: Trusting, claims: dict[str, Any]) -> None:
    check_poisons_nothing(safe, safe.token(**claims))


def test_8_a_merge_request_of_gitlab_stays_in_its_scope(safe: Trusting) -> None:
    issuer = Issuer("https://gitlab.com")
    issuer.publish()
    made_rule(safe.cloud, provider="gitlab", pinned={"project_id": "22", "namespace_id": "72"})

    def job(**claims: Any) -> Sender:
        reply = safe.exchange(issuer.mint(gitlab_claims(**claims)))
        return Sender(reply.json["access_token"], slug="acme")

    request = job(pipeline_source="merge_request_event", ref_path="refs/merge-requests/1/head")
    check_poisons_nothing(safe, request)
    put(job(ref_path="refs/tags/main", ref_type="tag"), "abc", POISON)
    assert read(safe.token(), "abc") is None
    put(job(), "abc", CLEAN)
    assert (read(request, "abc"), scope_of(safe.token(), "abc")) == (CLEAN, "shared")


def test_22_a_job_that_only_reads_stores_nothing(safe: Trusting) -> None:
    main = safe.token()
    put(main, "abc", CLEAN)
    narrow(safe, RuleChange(others=Others.READ))
    asked_less = safe.exchange(scope="artifacts:read").json["access_token"]
    for send in (safe.token(**PULL), Sender(asked_less)):
        for preflight in (False, True):
            refused = send(
                "OPTIONS" if preflight else "PUT",
                "/v8/artifacts/def",
                body=POISON,
                headers=PREFLIGHT if preflight else {},
            )
            assert outcome(refused) == (403, "read_only")
        assert (read(send, "abc"), scope_of(send, "abc")) == (CLEAN, "shared")
    narrow(safe, RuleChange(others=Others.REFUSE))
    assert safe.job(**PULL).status == 400
    assert safe.job().status == 200


def test_22_a_key_without_trust_is_not_a_trusted_job(safe: Trusting) -> None:
    put(new_key(safe.cloud), "abc", POISON)
    assert read(safe.token(), "abc") is None
    assert read(safe.token(**PULL), "abc") is None


def test_28_jobs_of_one_ref_share_a_scope_that_no_other_job_reads(safe: Trusting) -> None:
    put(safe.token(**PULL), "abc", POISON)
    assert read(safe.token(**PULL), "abc") == POISON
    for reader in (safe.token(**OTHER_PULL), safe.token(event_name="pull_request_target")):
        assert read(reader, "abc") is None


@pytest.mark.parametrize(
    "claims",
    [
        # Two forks can have branches of one name.
        {"event_name": "pull_request_target", "head_ref": "feature", "base_ref": "main"},
        {"event_name": "workflow_run"},
        {"event_name": "issue_comment"},
        {"event_name": "issues"},
        {"event_name": "discussion_comment"},
        {"event_name": "check_suite"},
        {"event_name": "watch"},
        # Of a pull request that was merged.
        {"event_name": "pull_request", "head_ref": "feature", "base_ref": "main"},
    ],
    ids=lambda claims: str(claims["event_name"]),
)
def test_28_jobs_of_outsiders_on_the_base_branch_are_apart(safe: Trusting, claims: dict[str, str]) -> None:
    put(safe.token(**claims, run_id="66"), "abc", POISON)
    assert read(safe.token(**claims, run_id="7"), "abc") is None
    assert read(safe.token(**claims, run_id="66"), "abc") == POISON
    assert safe.job(**claims, run_id=None).json["scope"] == "artifacts:read"


@pytest.mark.parametrize("ref", [PULL, {"event_name": "push", "ref": "refs/heads/feature"}])
def test_28_runs_of_one_pull_request_or_branch_share_a_scope(safe: Trusting, ref: dict[str, str]) -> None:
    put(safe.token(**ref, run_id="66"), "abc", POISON)
    assert read(safe.token(**ref, run_id="7"), "abc") == POISON


@pytest.mark.parametrize(
    ("claims", "shares"),
    [
        ({"pipeline_source": "merge_request_event"}, False),
        ({"pipeline_source": "external_pull_request_event"}, False),
        ({"pipeline_source": "parent_pipeline"}, False),
        # The ref is a branch of the project, not of a fork.
        ({"pipeline_source": "merge_request_event", "job_project_id": "22"}, True),
        ({"pipeline_source": "push"}, True),
    ],
)
def test_28_merge_requests_with_a_branch_of_one_name_are_apart(
    safe: Trusting, claims: dict[str, str], shares: bool
) -> None:
    issuer = Issuer(GITLAB)
    issuer.publish()
    made_rule(safe.cloud, provider="gitlab", pinned={"project_id": "22", "namespace_id": "72"})

    def job(pipeline: str) -> Sender:
        sent = gitlab_claims(ref_path="refs/heads/feature", pipeline_id=pipeline, **claims)
        return Sender(safe.exchange(issuer.mint(sent)).json["access_token"], slug="acme")

    put(job("66"), "abc", POISON)
    assert read(job("7"), "abc") == (POISON if shares else None)


def test_28_an_instance_that_knows_the_token_notices_the_protection(trusting: Trusting) -> None:
    main, pull = trusting.token(), trusting.token(**PULL)
    assert read(main, "abc") is read(pull, "abc") is None
    protect(trusting.cloud)
    with seconds_later():
        put(pull, "abc", POISON)
        assert (read(pull, "abc"), read(main, "abc")) == (POISON, None)
        put(main, "abc", CLEAN)
        assert read(pull, "abc") == CLEAN


LOSES_TRUST: dict[str, RuleChange | None] = {
    "deleted": None,
    "disabled": RuleChange(enabled=False),
    "narrowed": RuleChange(refs=("refs/heads/release",)),
    "renamed": RuleChange(name="other"),
}


def end_rule(safe: Trusting, how: str) -> None:
    change = LOSES_TRUST[how]
    if change is None:
        delete_rule(safe.cloud.team.id, safe.rule.id, by=None)
    else:
        narrow(safe, change)


@pytest.mark.parametrize("how", ["deleted", "narrowed", "disabled"])
def test_29_a_token_ends_with_its_rule(safe: Trusting, how: str) -> None:
    main, pull = safe.token(), safe.token(**PULL)
    put(main, "abc", CLEAN)
    put(pull, "def", POISON)
    end_rule(safe, how)
    for send in (main, pull):
        for method in ("PUT", "GET", "HEAD", "OPTIONS"):
            body = POISON if method == "PUT" else b""
            reply = send(method, "/v8/artifacts/abc", body=body, headers=PREFLIGHT)
            assert reply.status == 401
    assert read(session(safe.cloud), "abc") == CLEAN
    if how == "narrowed":
        put(safe.token(), "ghi", POISON)
        assert read(safe.token(ref="refs/heads/release"), "ghi") is None


@pytest.mark.parametrize(
    ("how", "published_by"), [*((how, "event") for how in LOSES_TRUST), ("disabled", "reader"), ("disabled", "query")]
)
def test_29_an_upload_that_was_offered_ends_with_its_rule(safe: Trusting, how: str, published_by: str) -> None:
    key = offer(safe.token(), "abc")
    end_rule(safe, how)
    put_object(key, POISON)
    laptop = session(safe.cloud)
    match published_by:
        case "event":
            announce(key)
        case "reader":
            assert laptop("GET", "/v8/artifacts/abc").status == 404
        case "query":
            found = laptop("POST", "/v8/artifacts", json_body={"hashes": ["abc"]})
            assert found.json == {"abc": None}
    assert read(laptop, "abc") is None
    # Neither a late event nor another upload to the URL brings it back.
    put_object(key, POISON)
    announce(key)
    assert read(laptop, "abc") is None
    put(trusted_key(safe.cloud), "abc", CLEAN)
    announce(key)
    assert read(laptop, "abc") == CLEAN


def test_29_an_upload_that_was_offered_before_a_rule_was_off_and_on_again_is_refused(safe: Trusting) -> None:
    key = offer(safe.token(), "abc")
    for enabled in (False, True):
        narrow(safe, RuleChange(enabled=enabled))
    put_object(key, POISON)
    announce(key)
    assert read(safe.token(), "abc") is None
    put(safe.token(), "abc", CLEAN, preflight=True)
    assert read(safe.token(), "abc") == CLEAN


def test_29_what_was_published_before_the_rule_ended_stays(safe: Trusting) -> None:
    put(safe.token(), "abc", CLEAN, preflight=True)
    narrow(safe, RuleChange(enabled=False))
    assert read(session(safe.cloud), "abc") == CLEAN


def test_29_a_job_may_end_its_token_before_the_event_of_its_last_upload(safe: Trusting) -> None:
    job = safe.token()
    key = offer(job, "abc")
    put_object(key, CLEAN)
    assert revoke(str(job.token)).status == 200
    announce(key)
    assert read(session(safe.cloud), "abc") == CLEAN


def rebuild_lost_index() -> None:
    lose(items=True, totals=True)
    rebuild_index(now=clock.now(), workers=1)


def test_29_a_rebuild_of_a_lost_index_publishes_nothing_of_a_rule_that_ended(safe: Trusting) -> None:
    key = offer(safe.token(), "abc")
    narrow(safe, RuleChange(enabled=False))
    put_object(key, POISON)
    announce(key)
    laptop = session(safe.cloud)
    assert read(laptop, "abc") is None
    rebuild_lost_index()
    assert read(laptop, "abc") is None


@preflight_or_not
def test_24_a_rebuild_of_a_lost_index_keeps_the_first_upload(safe: Trusting, preflight: bool) -> None:
    put(safe.token(), "abc", CLEAN, preflight=preflight)
    put(safe.token(), "abc", POISON, preflight=True)
    put(safe.token(**PULL), "abc", POISON)
    main = safe.token()
    assert read(main, "abc") == CLEAN
    rebuild_lost_index()
    assert (read(main, "abc"), scope_of(safe.token(**PULL), "abc")) == (CLEAN, "shared")


def test_23_a_rebuild_of_a_lost_index_prefers_what_the_team_sees(trusting: Trusting) -> None:
    put(trusting.token(), "abc", POISON)
    with protected(trusting.cloud):
        main = trusting.token()
        put(main, "abc", CLEAN)
        put(trusting.token(**PULL), "def", POISON)
        rebuild_lost_index()
        assert read(main, "abc") == CLEAN
        assert read(main, "def") is None
        assert read(trusting.token(**PULL), "def") == POISON


@pytest.mark.parametrize("end", ["demoted", "removed", "suspended"])
def test_22_an_upload_that_a_trusted_key_was_offered_needs_the_role(safe: Trusting, end: str) -> None:
    bob = create_user("bob@acme.example", "Bob", now=clock.now())
    add_member(safe.cloud.team.id, bob.id, Role.ADMIN, now=clock.now())
    send = new_key(safe.cloud, NewKey(user_id=bob.id, permissions=TRUSTED))
    first, second = offer(send, "first"), offer(send, "second")
    put_object(first, CLEAN)
    announce(first)
    match end:
        case "demoted":
            add_member(safe.cloud.team.id, bob.id, Role.MEMBER, now=clock.now())
        case "removed":
            remove_member(safe.cloud.team.id, bob.id, by=None)
        case "suspended":
            suspend_user(bob.id, now=clock.now())
    put_object(second, POISON)
    announce(second)
    laptop = session(safe.cloud)
    assert (read(laptop, "first"), read(laptop, "second")) == (CLEAN, None)


def test_31_the_settings_for_people_do_not_apply_to_jobs(safe: Trusting) -> None:
    change = ProtectionChange(protected=True, people=People.READ)
    change_protection(safe.cloud.team.id, change, by=None)
    put(safe.token(**PULL), "abc", POISON)
    put(safe.token(), "abc", CLEAN)
    refused = session(safe.cloud)("PUT", "/v8/artifacts/def", body=POISON)
    assert outcome(refused) == (403, "read_only")


def test_jobs_have_to_sign_if_the_team_asks_for_it(safe: Trusting) -> None:
    change = ProtectionChange(protected=True, unsigned=Unsigned.REFUSE)
    change_protection(safe.cloud.team.id, change, by=None)
    for send in (safe.token(), safe.token(**PULL)):
        refused = send("PUT", "/v8/artifacts/abc", body=POISON)
        assert outcome(refused) == (403, "signature_required")
        assert "location" not in send("OPTIONS", "/v8/artifacts/abc", headers=PREFLIGHT).headers
        signed = {"x-artifact-tag": "c2lnbmF0dXJl"}
        assert send("PUT", "/v8/artifacts/abc", body=CLEAN, headers=signed).status == 202


@preflight_or_not
def test_24_25_only_a_dispatched_job_replaces(safe: Trusting, preflight: bool) -> None:
    repair, scheduled = (safe.token(event_name="workflow_dispatch"), safe.token(event_name="schedule"))
    put(safe.token(), "abc", POISON)
    for send in (scheduled, safe.token(event_name="workflow_dispatch", ref="refs/heads/evil")):
        put(send, "abc", CLEAN, preflight=preflight)
        assert read(safe.token(), "abc") == POISON
    put(repair, "abc", CLEAN, preflight=preflight)
    assert read(safe.token(), "abc") == CLEAN
    entries = read_entries(safe.cloud.team.id, limit=100, now=clock.now()).entries
    (replaced,) = [entry for entry in entries if entry.action == "artifact_replaced"]
    assert (replaced.subject, replaced.size_bytes) == ("abc", len(POISON))


def test_25_a_rule_says_which_events_replace(safe: Trusting) -> None:
    assert safe.job(event_name="workflow_dispatch").json["scope"].endswith("artifacts:replace")
    narrow(safe, RuleChange(replace_events=("schedule",)))
    for event, replaces in (("workflow_dispatch", False), ("schedule", True)):
        assert ("artifacts:replace" in safe.job(event_name=event).json["scope"]) == replaces
    own = safe.job(event_name="schedule", ref="refs/heads/x")
    assert own.json["scope"] == "artifacts:read artifacts:write"
    less = safe.exchange(safe.issuer.mint(github_claims(event_name="schedule")), scope="artifacts:read")
    assert less.json["scope"] == "artifacts:read"
    narrow(safe, RuleChange(replace_events=()))
    assert "artifacts:replace" not in safe.job(event_name="schedule").json["scope"]
