"""GET /v8/artifacts/status"""

import pytest

from larder.teams.models import Block, CachingStatus
from larder.teams.state import change_state
from tests.conftest import SetOption
from tests.requests import Cloud, Sender


def test_enabled_by_default(send: Sender) -> None:
    reply = send("GET", "/v8/artifacts/status")
    assert (reply.status, reply.json) == (200, {"status": "enabled"})


@pytest.mark.parametrize("status", [CachingStatus.DISABLED, CachingStatus.PAUSED])
def test_the_status_that_was_set_for_the_team(cloud: Cloud, status: CachingStatus) -> None:
    change_state(cloud.team.id, caching=status)
    assert cloud.send("GET", "/v8/artifacts/status").json == {"status": status.value}


@pytest.mark.usefixtures("refusing")
def test_over_limit_if_the_quota_is_used_up(cloud: Cloud) -> None:
    change_state(cloud.team.id, quota_bytes=8)
    cloud.send("PUT", "/v8/artifacts/abc", body=b"8 bytes.")
    assert cloud.send("GET", "/v8/artifacts/status").json == {"status": "over_limit"}


@pytest.mark.usefixtures("refusing")
def test_over_limit_by_the_default_quota_of_the_deployment(send: Sender, option: SetOption) -> None:
    option("default_quota_bytes", 8)
    send("PUT", "/v8/artifacts/abc", body=b"8 bytes.")
    assert send("GET", "/v8/artifacts/status").json == {"status": "over_limit"}


def test_paused_takes_precedence_over_over_limit(cloud: Cloud) -> None:
    change_state(cloud.team.id, quota_bytes=1)
    cloud.send("PUT", "/v8/artifacts/abc", body=b"x")
    change_state(cloud.team.id, caching=CachingStatus.PAUSED)
    assert cloud.send("GET", "/v8/artifacts/status").json == {"status": "paused"}


@pytest.mark.parametrize(("block", "code"), [(Block.SOFT, "account_soft_blocked"), (Block.PAYMENT, "payment_missing")])
def test_402_for_a_blocked_account(cloud: Cloud, block: Block, code: str) -> None:
    change_state(cloud.team.id, block=block)
    reply = cloud.send("GET", "/v8/artifacts/status")
    assert (reply.status, reply.code) == (402, code)
    change_state(cloud.team.id, unblock=True)
    assert cloud.send("GET", "/v8/artifacts/status").status == 200


def test_client_headers_are_not_checked(send: Sender) -> None:
    headers = {"x-artifact-client-ci": "x" * 51, "x-artifact-client-interactive": "yes"}
    assert send("GET", "/v8/artifacts/status", headers=headers).status == 200


def test_personal_artifacts_have_their_own_status(cloud: Cloud, personal: Sender) -> None:
    change_state(cloud.user.id, caching=CachingStatus.DISABLED)
    assert personal("GET", "/v8/artifacts/status").json == {"status": "disabled"}
    assert cloud.send("GET", "/v8/artifacts/status").json == {"status": "enabled"}
