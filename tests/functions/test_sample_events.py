"""Every function handles its event in events/ with only the permissions that the template grants."""

import json
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
import time_machine

from larder import clock
from larder.accounts.models import User
from larder.accounts.sessions import start_session
from larder.api_keys import repository
from larder.artifacts.models import ArtifactHash, PendingUpload, parse_object_key
from larder.artifacts.repository import index
from larder.clock import to_ms
from larder.trust import repository as rule_store
from larder.trust.models import NewRule
from larder.trust.rules import create_rule
from local.event_delivery import matches
from local.template import load_template
from tests.catalogue import NAMES
from tests.conftest import SetOption
from tests.default_template import template
from tests.direct_uploads import put_object
from tests.functions.api_keys.people import verified
from tests.local.stub_service import eventually
from tests.mailbox import Mailbox
from tests.requests import Cloud, invoke
from tools.generate.events import FOLDER, NOW, OWNER, SAMPLES

TEMPLATE = template()
EVENTS = sorted(path.stem for path in FOLDER.iterdir())


def sample(name: str, cloud: Cloud) -> dict[str, Any]:
    """The event with the tokens, key and team of `cloud`."""
    text = (FOLDER / f"{name}.json").read_text()
    if NAMES.session in text:
        text = text.replace(NAMES.session, session_token(cloud.user))
    # The sample of the id starts with the sample of the key.
    for sample, real in (
        (NAMES.key_id, cloud.key.id),
        (NAMES.key, cloud.token),
        (OWNER, cloud.team.id),
        # A run that is too old is refused.
        (str(SAMPLES.run_started_ms), str(to_ms(clock.now()))),
    ):
        text = text.replace(sample, real)
    event: dict[str, Any] = json.loads(text)
    return event


def session_token(user: User) -> str:
    """The token of a session. Its user is an operator."""
    return start_session(verified(user), now=clock.now())[1]


def run(name: str, cloud: Cloud) -> Any:
    (handler,) = (function.handler for function in TEMPLATE.functions if function.handler.split(".")[1] == name)
    return invoke(handler, sample(name, cloud))


def answer(name: str, cloud: Cloud) -> Any:
    """The body of the reply."""
    return json.loads(run(name, cloud)["body"])


BEFORE = {
    **dict.fromkeys(("put_artifact", "fetch_artifact", "artifact_exists", "query_artifacts"), "put_artifact"),
    **dict.fromkeys(("list_artifacts", "inspect_artifact", "delete_artifact"), "put_artifact"),
    **dict.fromkeys(("get_run", "list_runs", "get_task_history"), "record_run"),
    "sign_in": "sign_up",
}
"""The event that has to come before another one."""

REPLIES = {
    "fetch_artifact": (200, json.loads((FOLDER / "put_artifact.json").read_text())["body"]),
    "query_artifacts": (200, '"5347b63f08e4547d": null'),
    "list_artifacts": (200, '"count": 1'),
    "delete_artifact": (200, '"deleted": true'),
    "get_status": (200, '{"status": "enabled"}'),
    "set_caching_status": (200, '{"status": "paused"}'),
    "preflight": (204, "https://"),
    "verify_api_key": (200, '"valid": true'),
    "create_api_key": (200, '"name": "ci"'),
    "update_api_key": (200, '"name": "deploy"'),
    "create_team": (200, '"slug": "web-platform"'),
    "update_team": (200, '"slug": "acme-inc"'),
    "invite_members": (200, '"email": "bob@example.com"'),
    "record_run": (200, '"recorded": true'),
    "get_run": (200, '"branch": "main"'),
    "get_task_history": (200, '"hits": 1'),
    "show_openapi": (200, '"title": "Larder"'),
    "describe_login": (200, "turbo on Linux"),
    "grant_login": (200, "http://127.0.0.1:9789/?token="),
    "start_sso_login": (302, "/turborepo/token?"),
    "sign_up": (200, '"email": "ada@example.com"'),
    "answer_unknown": (404, "not_found"),
    # What the sample names does not exist.
    "exchange_id_token": (400, "invalid_request"),
    "change_member": (404, "member_not_found"),
    "remove_member": (404, "member_not_found"),
    "join_team": (404, "invitation_not_found"),
    "join_team_of_team": (404, "invitation_not_found"),
    "preview_invitation": (404, "invitation_not_found"),
    "exchange_login_code": (401, ""),
    "verify_email": (302, "/verified?error=invalid_token"),
    "confirm_new_email": (401, ""),
    "follow_reset_link": (302, "error=INVALID_TOKEN"),
    "reset_password": (400, "INVALID_TOKEN"),
    "finish_provider_sign_in": (302, "/sign-in?error=state_mismatch"),
    "start_provider_sign_in": (404, "PROVIDER_NOT_FOUND"),
    "link_social": (404, "PROVIDER_NOT_FOUND"),
    # The owner of the sample has no password and no other way to sign in, and is the only owner of the team.
    "change_password": (400, "INVALID_PASSWORD"),
    "verify_password": (400, "INVALID_PASSWORD"),
    "unlink_account": (400, "FAILED_TO_UNLINK_LAST_ACCOUNT"),
    "delete_user": (400, "SOLE_TEAM_OWNER"),
}
"""The status of the reply, and a part of its body or of its address."""

ABOUT_RULES = ["get_rule", "update_rule", "delete_rule"]


@pytest.mark.parametrize("name", sorted(set(EVENTS) - {*ABOUT_RULES}))
def test_an_event_gets_its_reply(
    name: str, cloud: Cloud, mailbox: Mailbox, removal_jobs: object, option: SetOption
) -> None:
    option("operator_emails", cloud.user.email)
    option("trusted_origins", "https://app.example.com")
    with time_machine.travel(NOW, tick=False) if "run" in name or "task" in name else nullcontext():
        if name in BEFORE:
            run(BEFORE[name], cloud)
        reply = run(name, cloud)
    if reply is None:
        return
    status, text = REPLIES.get(name, (None, ""))
    assert reply["statusCode"] == status or (status is None and reply["statusCode"] < 400), reply
    assert text in str(reply.get("body")) + str(reply.get("headers")), reply
    if name.startswith("show_") and name != "show_openapi":
        assert reply["body"].startswith("<!doctype html>")


def test_the_s3_event_matches_the_rule_of_its_function(cloud: Cloud) -> None:
    event = sample("commit_upload", cloud)
    (rule,) = load_template().event_rules
    assert matches(rule.pattern, event)


KEPT_KEY = {
    path.stem
    for path in FOLDER.iterdir()
    if f"Bearer {NAMES.key}" in path.read_text() and path.stem != "revoke_current_token"
}
"""The events that authenticate with a key that still exists afterwards."""


@pytest.mark.parametrize("name", sorted(KEPT_KEY))
def test_a_request_with_a_key_records_its_use(name: str, cloud: Cloud) -> None:
    def last_request() -> datetime | None:
        key = repository.get(cloud.key.key_hash)
        assert key is not None
        return key.last_request

    assert last_request() is None
    run(name, cloud)
    assert eventually(lambda: last_request() is not None)


@pytest.mark.parametrize("name", ["fetch_artifact", "artifact_exists", "query_artifacts"])
def test_a_read_publishes_an_upload_that_has_arrived(cloud: Cloud, name: str) -> None:
    arrive(cloud)
    assert run(name, cloud)["statusCode"] in (200, 302)


def test_commit_upload(cloud: Cloud) -> None:
    hash, version = arrive(cloud)
    event = sample("commit_upload", cloud)
    event["detail"]["object"]["version-id"] = version
    invoke("artifacts.commit_upload.handler", event)
    artifact = index.read_entry(cloud.team.id, hash).artifact
    assert artifact is not None
    assert artifact.size_bytes == 22


def test_delete_artifacts(cloud: Cloud, removal_jobs: list[dict[str, Any]]) -> None:
    run("put_artifact", cloud)
    assert run("delete_artifacts", cloud)["statusCode"] == 202
    assert removal_jobs == [sample("remove_artifacts", cloud)]
    run("remove_artifacts", cloud)
    assert run("fetch_artifact", cloud)["statusCode"] == 404


@pytest.mark.parametrize("name", ABOUT_RULES)
def test_an_event_about_a_rule_finds_it(name: str, cloud: Cloud) -> None:
    made = create_rule(
        cloud.team.id,
        NewRule(provider="github", repository="acme/web"),
        by=None,
        origin="https://cache.example.com",
        now=clock.now(),
    )
    assert rule_store.delete(made, by=None)
    version = rule_store.version_of_all(cloud.team.id)
    assert rule_store.add(replace(made, id=NAMES.rule), by=None, rules_version=version, most=1)
    assert answer(name, cloud)["id"] == NAMES.rule


def arrive(cloud: Cloud) -> tuple[ArtifactHash, str]:
    """Offer the direct upload of the sample S3 event and store its object. Return the hash and the object's version."""
    key = sample("commit_upload", cloud)["detail"]["object"]["key"]
    upload = parse_object_key(key)
    assert upload is not None
    index.put_pending(PendingUpload(upload=upload, created_at=clock.now()))
    return upload.hash, put_object(key, b"x" * 22)
