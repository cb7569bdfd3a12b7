"""Every function handles its event in events/ with only the permissions that the template grants."""

import base64
import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any
from unittest.mock import ANY

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
from local.template import load_template
from tests.catalogue import NAMES
from tests.conftest import SetOption
from tests.direct_uploads import put_object
from tests.functions.api_keys.people import verified
from tests.local.stub_service import eventually
from tests.mailbox import Mailbox
from tests.requests import Cloud, invoke
from tools.generate.events import FOLDER, NOW, OWNER, SAMPLES

TEMPLATE = load_template(environ={})
EVENTS = sorted(path.stem for path in FOLDER.iterdir())
TESTED_BELOW = Path(__file__).read_text()


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


@pytest.mark.usefixtures("mailbox")
@pytest.mark.parametrize("name", [name for name in EVENTS if f'"{name}"' not in TESTED_BELOW])
def test_events_without_a_separate_test_succeed(name: str, cloud: Cloud) -> None:
    reply = run(name, cloud)
    assert reply is None or reply["statusCode"] < 400


@pytest.mark.parametrize("name", ["get_rule", "update_rule", "delete_rule"])
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


def test_the_id_token_of_the_event_is_a_sample(cloud: Cloud) -> None:
    assert answer("exchange_id_token", cloud)["error"] == "invalid_request"


def test_the_s3_event_matches_the_rule_of_its_function(cloud: Cloud) -> None:
    event = sample("commit_upload", cloud)
    (rule,) = load_template().event_rules
    assert event["source"] in rule.pattern["source"]
    assert event["detail-type"] in rule.pattern["detail-type"]
    assert event["detail"]["bucket"]["name"] in rule.pattern["detail"]["bucket"]["name"]
    (prefix,) = (one["prefix"] for one in rule.pattern["detail"]["object"]["key"])
    assert event["detail"]["object"]["key"].startswith(prefix)


def test_put_artifact(cloud: Cloud) -> None:
    reply = run("put_artifact", cloud)
    assert reply["statusCode"] == 202
    assert len(json.loads(reply["body"])["urls"]) == 1


def test_put_artifact_again(cloud: Cloud) -> None:
    run("put_artifact", cloud)
    assert run("put_artifact", cloud)["statusCode"] == 202


def test_fetch_artifact(cloud: Cloud) -> None:
    stored = sample("put_artifact", cloud)
    run("put_artifact", cloud)
    reply = run("fetch_artifact", cloud)
    assert reply["statusCode"] == 200
    assert base64.b64decode(reply["body"]) == base64.b64decode(stored["body"])


def test_fetch_artifact_that_is_not_stored(cloud: Cloud) -> None:
    assert run("fetch_artifact", cloud)["statusCode"] == 404


def test_artifact_exists(cloud: Cloud) -> None:
    run("put_artifact", cloud)
    assert run("artifact_exists", cloud)["statusCode"] == 200


def test_query_artifacts(cloud: Cloud) -> None:
    run("put_artifact", cloud)
    reply = run("query_artifacts", cloud)
    assert reply["statusCode"] == 200
    found = json.loads(reply["body"])
    assert found["08e4547d5347b63f"]["taskDurationMs"] == 1234
    assert found["5347b63f08e4547d"] is None


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


def test_get_status(cloud: Cloud) -> None:
    reply = run("get_status", cloud)
    assert (reply["statusCode"], json.loads(reply["body"])) == (200, {"status": "enabled"})


def test_set_caching_status(cloud: Cloud) -> None:
    assert answer("set_caching_status", cloud) == {"status": "paused"}
    assert answer("get_status", cloud) == {"status": "paused"}


def test_preflight(cloud: Cloud) -> None:
    reply = run("preflight", cloud)
    assert reply["statusCode"] == 204
    headers = {name.lower(): value for name, value in reply["headers"].items()}
    assert headers["location"].startswith("https://")


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


def test_sweep_artifacts(cloud: Cloud) -> None:
    arrive(cloud)
    assert run("sweep_artifacts", cloud) is None


def test_list_artifacts(cloud: Cloud) -> None:
    run("put_artifact", cloud)
    assert len(answer("list_artifacts", cloud)["artifacts"]) == 1


def test_inspect_artifact(cloud: Cloud) -> None:
    run("put_artifact", cloud)
    assert answer("inspect_artifact", cloud)["writer"]["id"] == cloud.key.id


def test_delete_artifact(cloud: Cloud) -> None:
    run("put_artifact", cloud)
    assert answer("delete_artifact", cloud)["deleted"] is True
    assert run("fetch_artifact", cloud)["statusCode"] == 404


def test_delete_artifacts(cloud: Cloud, removal_jobs: list[dict[str, Any]]) -> None:
    run("put_artifact", cloud)
    assert run("delete_artifacts", cloud)["statusCode"] == 202
    assert removal_jobs == [sample("remove_artifacts", cloud)]
    run("remove_artifacts", cloud)
    assert run("fetch_artifact", cloud)["statusCode"] == 404


def test_verify_api_key(cloud: Cloud) -> None:
    reply = run("verify_api_key", cloud)
    assert reply["statusCode"] == 200
    assert json.loads(reply["body"])["valid"] is True


def test_create_api_key(cloud: Cloud) -> None:
    made = answer("create_api_key", cloud)
    assert (len(made["key"]), made["name"]) == (64, "ci")


def test_get_api_key(cloud: Cloud) -> None:
    assert answer("get_api_key", cloud)["id"] == cloud.key.id


def test_list_api_keys(cloud: Cloud) -> None:
    assert [key["id"] for key in answer("list_api_keys", cloud)] == [cloud.key.id]


def test_update_api_key(cloud: Cloud) -> None:
    assert answer("update_api_key", cloud)["name"] == "deploy"


def test_delete_api_key(cloud: Cloud) -> None:
    assert answer("delete_api_key", cloud) == {"success": True}


def test_delete_expired_api_keys(cloud: Cloud, option: SetOption) -> None:
    option("operator_emails", cloud.user.email)
    assert answer("delete_expired_api_keys", cloud)["success"] is True


def test_get_ok(cloud: Cloud) -> None:
    assert answer("get_ok", cloud) == {"ok": True}


def test_answer_cors_preflight(cloud: Cloud, option: SetOption) -> None:
    option("trusted_origins", "https://app.example.com")
    headers = run("answer_cors_preflight", cloud)["headers"]
    assert headers["Access-Control-Allow-Origin"] == "https://app.example.com"


def test_get_user(cloud: Cloud) -> None:
    assert answer("get_user", cloud)["user"]["email"] == cloud.user.email


def test_get_current_token(cloud: Cloud) -> None:
    assert answer("get_current_token", cloud)["token"]["scopes"][0]["teamId"] == cloud.team.id


def test_revoke_current_token(cloud: Cloud) -> None:
    assert answer("revoke_current_token", cloud) == {"tokenId": cloud.key.id}
    assert run("get_user", cloud)["statusCode"] == 401


def test_list_teams(cloud: Cloud) -> None:
    assert [team["id"] for team in answer("list_teams", cloud)["teams"]] == [cloud.team.id]


def test_get_team(cloud: Cloud) -> None:
    assert answer("get_team", cloud)["id"] == cloud.team.id


def test_create_team(cloud: Cloud) -> None:
    assert answer("create_team", cloud)["slug"] == "web-platform"


def test_update_team(cloud: Cloud) -> None:
    assert answer("update_team", cloud)["slug"] == "acme-inc"


def test_delete_team(cloud: Cloud) -> None:
    assert answer("delete_team", cloud) == {"id": cloud.team.id}
    run("sweep_deleted_teams", cloud)


def test_list_members(cloud: Cloud) -> None:
    assert [member["uid"] for member in answer("list_members", cloud)["members"]] == [cloud.user.id]


def test_invite_members(cloud: Cloud, mailbox: Mailbox) -> None:
    assert answer("invite_members", cloud)["email"] == "bob@example.com"
    assert len(mailbox.jobs) == 1


@pytest.mark.parametrize("name", ["change_member", "remove_member"])
def test_endpoints_that_change_a_member(name: str, cloud: Cloud) -> None:
    # The member in the sample does not exist.
    assert answer(name, cloud)["code"] == "member_not_found"


def test_join_team(cloud: Cloud) -> None:
    # The token in the sample does not exist.
    assert answer("join_team", cloud)["code"] == "invitation_not_found"


def test_preview_invitation(cloud: Cloud) -> None:
    assert answer("preview_invitation", cloud)["code"] == "invitation_not_found"


def test_record_run_list_runs_and_get_run(cloud: Cloud) -> None:
    with time_machine.travel(NOW, tick=False):
        assert answer("record_run", cloud)["recorded"]
        assert answer("get_run", cloud)["branch"] == "main"
        assert answer("get_task_history", cloud)["hashes"][0]["hits"] == 1
        assert [run["branch"] for run in answer("list_runs", cloud)["runs"]] == ["main"]


def test_get_usage(cloud: Cloud) -> None:
    usage = answer("get_usage", cloud)
    assert (usage["owner"], len(usage["days"])) == (cloud.team.id, 21)


@pytest.mark.parametrize(
    "name",
    [
        "show_console", "show_home", "show_invitation", "show_login", "show_login_success", "show_password_reset",
        "show_sign_in", "show_verified",
    ],
)  # fmt: skip
def test_every_page(name: str, cloud: Cloud) -> None:
    reply = run(name, cloud)
    assert reply["statusCode"] == 200
    assert reply["body"].startswith("<!doctype html>")


def test_show_openapi(cloud: Cloud) -> None:
    assert answer("show_openapi", cloud)["info"]["title"] == "Larder"


def test_answer_unknown(cloud: Cloud) -> None:
    assert answer("answer_unknown", cloud)["code"] == "not_found"


def test_describe_login(cloud: Cloud) -> None:
    described = answer("describe_login", cloud)
    assert described["user"]["email"] == cloud.user.email
    assert described["token"]["name"] == "turbo on Linux"


def test_grant_login(cloud: Cloud) -> None:
    assert answer("grant_login", cloud)["url"].startswith("http://127.0.0.1:9789/?token=")


def test_start_sso_login(cloud: Cloud) -> None:
    location = run("start_sso_login", cloud)["headers"]["Location"]
    assert location.startswith("/turborepo/token?")


def test_exchange_login_code(cloud: Cloud) -> None:
    # The code in the sample does not exist.
    assert run("exchange_login_code", cloud)["statusCode"] == 401


def test_sign_up(cloud: Cloud) -> None:
    assert answer("sign_up", cloud)["user"]["email"] == "ada@example.com"


def test_sign_in(cloud: Cloud) -> None:
    run("sign_up", cloud)
    assert len(answer("sign_in", cloud)["token"]) == 32


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sign_out", {"success": True}),
        ("revoke_session", {"status": True}),
        ("revoke_other_sessions", {"status": True}),
        ("revoke_sessions", {"status": True}),
        ("update_user", {"status": True}),
    ],
)
def test_endpoints_that_need_a_session(name: str, expected: object, cloud: Cloud) -> None:
    assert answer(name, cloud) == expected


def test_get_session(cloud: Cloud) -> None:
    assert answer("get_session", cloud)["user"]["email"] == cloud.user.email


def test_list_sessions(cloud: Cloud) -> None:
    assert len(answer("list_sessions", cloud)) == 1


def test_list_accounts(cloud: Cloud) -> None:
    assert answer("list_accounts", cloud) == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("request_verification", {"status": True}),
        ("request_password_reset", {"status": True, "message": ANY}),
        ("change_email", {"status": True}),
    ],
)
def test_endpoints_that_send_mail(name: str, expected: object, cloud: Cloud, mailbox: Mailbox) -> None:
    assert answer(name, cloud) == expected
    assert len(mailbox.jobs) == 1


def test_verify_email(cloud: Cloud) -> None:
    # The token in the sample has another signature.
    assert run("verify_email", cloud)["headers"]["Location"] == "/verified?error=invalid_token"


def test_confirm_new_email(cloud: Cloud) -> None:
    assert run("confirm_new_email", cloud)["statusCode"] == 401


def test_follow_reset_link(cloud: Cloud) -> None:
    assert "error=INVALID_TOKEN" in run("follow_reset_link", cloud)["headers"]["Location"]


def test_reset_password(cloud: Cloud) -> None:
    assert answer("reset_password", cloud)["code"] == "INVALID_TOKEN"


def test_change_password(cloud: Cloud) -> None:
    # The owner of the sample has no password.
    assert answer("change_password", cloud)["code"] == "INVALID_PASSWORD"


def test_delete_user(cloud: Cloud) -> None:
    assert answer("delete_user", cloud)["code"] == "SOLE_TEAM_OWNER"


def test_verify_password(cloud: Cloud) -> None:
    # The owner of the sample has no password.
    assert answer("verify_password", cloud)["code"] == "INVALID_PASSWORD"


def test_start_provider_sign_in(cloud: Cloud) -> None:
    # There is no provider of the sample.
    assert answer("start_provider_sign_in", cloud)["code"] == "PROVIDER_NOT_FOUND"


def test_finish_provider_sign_in(cloud: Cloud) -> None:
    location = run("finish_provider_sign_in", cloud)["headers"]["Location"]
    assert location == "/sign-in?error=state_mismatch"


def test_link_social(cloud: Cloud) -> None:
    assert answer("link_social", cloud)["code"] == "PROVIDER_NOT_FOUND"


def test_unlink_account(cloud: Cloud) -> None:
    # The owner of the sample has no way to sign in.
    assert answer("unlink_account", cloud)["code"] == "FAILED_TO_UNLINK_LAST_ACCOUNT"


def test_send_account_email(cloud: Cloud, mailbox: Mailbox) -> None:
    run("send_account_email", cloud)
    (message,) = mailbox.messages()
    assert message.to == cloud.user.email


def arrive(cloud: Cloud) -> tuple[ArtifactHash, str]:
    """Offer the direct upload of the sample S3 event and store its object. Return the hash and the object's version."""
    key = sample("commit_upload", cloud)["detail"]["object"]["key"]
    upload = parse_object_key(key)
    assert upload is not None
    index.put_pending(PendingUpload(upload=upload, created_at=clock.now()))
    return upload.hash, put_object(key, b"x" * 22)
