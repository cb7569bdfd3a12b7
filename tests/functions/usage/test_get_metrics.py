"""GET /v1/usage/metrics"""

from datetime import timedelta
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from larder import clock
from larder.teams.models import Block, CachingStatus
from larder.teams.state import change_state
from larder.usage.events import Reporter, UsageEvent
from larder.usage.service import record
from tests.conftest import SetOption
from tests.requests import Cloud, Sender
from tests.trust.scene import put


def metrics(send: Sender) -> dict[str, float]:
    """The value of each sample, read as Prometheus reads it."""
    reply = send("GET", "/v1/usage/metrics")
    assert (reply.status, reply.headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    families = [*text_string_to_metric_families(reply.body.decode())]
    assert all(family.documentation and family.type in ("counter", "gauge") for family in families)
    return {
        " ".join((sample.name, *sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
    }


def report(owner: str, source: str, event: str, hash: str = "abc", *, days_ago: int = 0) -> None:
    of_task = UsageEvent(session_id="s", source=source, event=event, hash=hash, duration_ms=1500)
    reporter = Reporter(key_id="key", user_id="user", ci=None, interactive=None)
    record(owner, [of_task], reporter, now=clock.now() - timedelta(days=days_ago))


def test_a_new_team_has_zeros(cloud: Cloud) -> None:
    assert set(metrics(cloud.send).items()) >= {
        ("larder_lookups_total turbo remote hit", 0),
        ("larder_uploads_total", 0),
        ("larder_stored_bytes", 0),
        ("larder_caching_enabled", 1),
    }


def test_lookups_of_today_count_by_tool_cache_and_result(cloud: Cloud) -> None:
    for source, event, hash in (("LOCAL", "MISS", "abc"), ("REMOTE", "HIT", "abc"), ("REMOTE", "HIT", "nx-1")):
        report(cloud.team.id, source, event, hash)
    report(cloud.team.id, "REMOTE", "HIT", days_ago=1)
    found = metrics(cloud.send)
    assert {name: value for name, value in found.items() if "lookups" in name and value} == {
        "larder_lookups_total turbo local miss": 1,
        "larder_lookups_total turbo remote hit": 1,
        "larder_lookups_total nx remote hit": 1,
    }
    assert found["larder_time_saved_seconds_total turbo"] == 1.5


def test_what_is_stored_and_its_quota(cloud: Cloud, option: SetOption) -> None:
    option("default_quota_bytes", 0)
    assert "larder_quota_bytes" not in metrics(cloud.send)
    put(cloud.send, "abc", b"12345")
    change_state(cloud.team.id, quota_bytes=1000)
    found = metrics(cloud.send)
    names = ("uploads_total", "uploaded_bytes_total", "stored_artifacts", "stored_bytes", "quota_bytes")
    assert [found[f"larder_{name}"] for name in names] == [1, 5, 1, 5, 1000]


@pytest.mark.parametrize(
    "change", [{"caching": CachingStatus.PAUSED}, {"block": Block.SOFT}, {"quota_bytes": 1}], ids=str
)
def test_caching_that_builds_cannot_use_is_0(cloud: Cloud, change: dict[str, Any], option: SetOption) -> None:
    option("over_quota", "refuse")
    put(cloud.send, "abc", b"12345")
    change_state(cloud.team.id, **change)
    assert metrics(cloud.send)["larder_caching_enabled"] == 0
