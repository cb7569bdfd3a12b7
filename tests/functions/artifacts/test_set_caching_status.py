"""PUT /v1/artifacts/status"""

from typing import Any

import pytest

from larder import clock
from larder.accounts.models import User
from larder.accounts.sessions import start_session
from larder.api_keys.keys import create_key
from larder.api_keys.properties import NewKey
from larder.settings import settings
from larder.teams.models import CachingStatus, OwnerState
from larder.teams.repository import read_state
from larder.teams.state import change_state
from tests.proofs.aws_calls import counted
from tests.requests import Cloud, Reply, Sender

MANAGE = {"artifacts": ("read", "manage")}


def put_status(send: Sender, status: Any) -> Reply:
    return send("PUT", "/v1/artifacts/status", json_body={"status": status})


def by_session(user: User, **team: str) -> Sender:
    return Sender(start_session(user, now=clock.now())[1], **team)


def by_key(user: User, permissions: Any, **team: str) -> Sender:
    new = NewKey(user_id=user.id, permissions=permissions)
    return Sender(create_key(new, now=clock.now())[1], **team)


@pytest.fixture
def owner(cloud: Cloud) -> Sender:
    """The owner of the team, signed in."""
    return by_session(cloud.user, slug="acme")


@pytest.mark.parametrize("status", ["disabled", "paused"])
def test_the_change_takes_effect_at_the_next_request_and_can_be_reverted(
    cloud: Cloud, owner: Sender, status: str
) -> None:
    assert cloud.send("PUT", "/v8/artifacts/abc", body=b"artifact").status == 202
    reply = put_status(owner, status)
    assert (reply.status, reply.json) == (200, {"status": status})
    assert cloud.send("GET", "/v8/artifacts/status").json == {"status": status}
    assert cloud.send("GET", "/v8/artifacts/abc").code == f"remote_caching_{status}"
    assert cloud.send("PUT", "/v8/artifacts/abc", body=b"x").code == f"remote_caching_{status}"
    assert put_status(owner, "enabled").json == {"status": "enabled"}
    assert cloud.send("GET", "/v8/artifacts/abc").body == b"artifact"


@pytest.mark.usefixtures("refusing")
def test_the_reply_has_the_effective_status(cloud: Cloud, owner: Sender) -> None:
    change_state(cloud.team.id, quota_bytes=5)
    assert cloud.send("PUT", "/v8/artifacts/abc", body=b"12345").status == 202
    assert put_status(owner, "disabled").json == {"status": "disabled"}
    assert put_status(owner, "enabled").json == {"status": "over_limit"}


def test_nothing_else_changes(cloud: Cloud, owner: Sender) -> None:
    change_state(cloud.team.id, quota_bytes=70)
    assert put_status(owner, "paused").status == 200
    assert read_state(cloud.team.id) == OwnerState(caching=CachingStatus.PAUSED, quota_bytes=70)
    assert read_state(cloud.user.id) == OwnerState(quota_bytes=settings().unverified_quota_bytes)


def test_a_user_sets_the_status_of_their_personal_artifacts(cloud: Cloud) -> None:
    for send, status in ((by_session(cloud.user), "disabled"), (by_key(cloud.user, MANAGE), "paused")):
        assert put_status(send, status).json == {"status": status}
        assert read_state(cloud.user.id).caching is CachingStatus(status)
    assert read_state(cloud.team.id).caching is CachingStatus.ENABLED


def test_a_missing_token_is_reported_before_any_other_error(cloud: Cloud) -> None:
    assert put_status(Sender(None, slug="acme"), "never").status == 401


def audited(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [vars(record) for record in caplog.records if record.message == "audit"]


def test_the_audit_log_records_the_user_and_the_change(
    cloud: Cloud, owner: Sender, caplog: pytest.LogCaptureFixture
) -> None:
    put_status(owner, "paused")
    (line,) = audited(caplog)
    assert (line["action"], line["subject"]) == ("caching_status_set", "paused")
    assert (line["owner"], line["user_id"]) == (cloud.team.id, cloud.user.id)


def test_a_refusal_is_not_audited(cloud: Cloud, owner: Sender, caplog: pytest.LogCaptureFixture) -> None:
    put_status(owner, "over_limit")
    put_status(cloud.send, "paused")
    assert not audited(caplog)


def test_the_number_of_sequential_aws_calls(cloud: Cloud, owner: Sender) -> None:
    with counted() as calls:
        assert put_status(owner, "paused").status == 200
    # First the slug and the session token, then everything about both.
    assert calls.sequential == 4, calls.steps
