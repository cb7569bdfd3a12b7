"""Log lines in CloudWatch's embedded metric format."""

import json
from io import StringIO
from typing import Any

import pytest

from larder import clock, metrics
from larder.rate_limits.service import report_store_failure
from tests.requests import Cloud, Sender
from tests.trust.scene import protected, put, trusted_key

HASH = "08e4547d5347b63f"
STACK = "Larder/larder"
GET, HEAD = "GET /v8/artifacts/{hash}", "HEAD /v8/artifacts/{hash}"


def figures(line: dict[str, Any]) -> dict[str, tuple[str, list[dict[str, str]]]]:
    """The metrics that CloudWatch reads from one line: for each, its namespace and its dimensions."""
    found = {}
    for directive in line.get("_aws", {}).get("CloudWatchMetrics", []):
        assert directive.keys() == {"Namespace", "Dimensions", "Metrics"}
        for metric in directive["Metrics"]:
            assert metric == {"Name": metric["Name"], "Unit": "Count"}
            assert line[metric["Name"]] == 1
            kept = [{name: line[name] for name in names} for names in directive["Dimensions"]]
            found[metric["Name"]] = (directive["Namespace"], kept)
    return found


def lines_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_separate_line_counts_the_total_and_each_value(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    environment.setenv("POWERTOOLS_METRICS_NAMESPACE", "Larder/larder-prod")
    before = clock.to_ms(clock.now())
    metrics.count("Surprises", kind="nice")
    (line,) = lines_of(capsys.readouterr().out)
    assert before <= line["_aws"]["Timestamp"] <= clock.to_ms(clock.now())
    assert figures(line) == {"Surprises": ("Larder/larder-prod", [{}, {"kind": "nice"}])}


def test_metrics_have_units(environment: pytest.MonkeyPatch) -> None:
    line = metrics.measured(Eggs=(12, "Count"), Milk=(3, "Bytes"))
    (directive,) = line["_aws"]["CloudWatchMetrics"]
    assert (directive["Namespace"], directive["Dimensions"]) == (STACK, [[]])
    units = {metric["Name"]: metric["Unit"] for metric in directive["Metrics"]}
    assert units == {"Eggs": "Count", "Milk": "Bytes"}
    assert (line["Eggs"], line["Milk"]) == (12, 3)


def test_a_metric_of_0_is_not_reported(environment: pytest.MonkeyPatch) -> None:
    line = metrics.measured(Eggs=(12, "Count"), Milk=(0, "Bytes"))
    (directive,) = line["_aws"]["CloudWatchMetrics"]
    assert [metric["Name"] for metric in directive["Metrics"]] == ["Eggs"]
    assert "Milk" not in line
    assert metrics.measured(Eggs=(0, "Count")) == {}


def test_a_request_that_passes_uncounted_is_a_metric(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report_store_failure("http")
    (line,) = lines_of(capsys.readouterr().out)
    assert figures(line) == {"RateLimitStoreFailures": (STACK, [{}, {"limit": "http"}])}


@pytest.mark.parametrize(
    ("size", "method", "outcome"),
    [
        (1000, "GET", "Hits"),
        (300_000, "GET", "Redirects"),
        (None, "GET", "Misses"),
        (1000, "HEAD", "Hits"),
        (None, "HEAD", "Misses"),
    ],
)
def test_an_artifact_request_is_counted_in_its_regular_log_line(
    cloud: Cloud, log: StringIO, size: int | None, method: str, outcome: str
) -> None:
    if size:
        assert cloud.send("PUT", f"/v8/artifacts/{HASH}", body=bytes(size)).status == 202
    log.truncate(0)
    log.seek(0)
    cloud.send(method, f"/v8/artifacts/{HASH}")
    (line,) = lines_of(log.getvalue())
    assert line["message"] == "answered"
    route = {"GET": GET, "HEAD": HEAD}[method]
    assert figures(line) == {outcome: (STACK, [{"route": route}])}


def test_a_hit_in_an_own_scope_is_counted_twice(cloud: Cloud, log: StringIO) -> None:
    with protected(cloud):
        put(cloud.send, HASH, b"made by a pull request")
        put(trusted_key(cloud), "shared", b"made by main")
        log.truncate(0)
        log.seek(0)
        for path in (HASH, "shared", "absent"):
            cloud.send("GET", f"/v8/artifacts/{path}")
    lines = lines_of(log.getvalue())
    assert [list(figures(line)) for line in lines] == [["Hits", "HitsOwnScope"], ["Hits"], ["Misses"]]


def test_refusals_and_other_requests_are_neither_hits_nor_misses(cloud: Cloud, stranger: Sender, log: StringIO) -> None:
    assert stranger("GET", f"/v8/artifacts/{HASH}").status == 403
    assert cloud.send("GET", "/v8/artifacts/no%2Fhash").status == 400
    assert cloud.send("GET", "/v8/artifacts/status").status == 200
    assert cloud.send("PUT", f"/v8/artifacts/{HASH}", body=b"x").status == 202
    lines = lines_of(log.getvalue())
    assert len(lines) == 4
    assert [figures(line) for line in lines] == [{}] * 4


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", f"/v8/artifacts/{HASH}"),
        ("HEAD", f"/v8/artifacts/{HASH}"),
        ("PUT", f"/v8/artifacts/{HASH}"),
        ("POST", "/v8/artifacts/events"),
        ("GET", "/v8/artifacts/status"),
    ],
)
def test_a_request_to_the_cache_without_a_token_is_counted_with_the_throttled_ones(
    method: str, path: str, cloud: Cloud, log: StringIO
) -> None:
    assert Sender(None)(method, path, body=b"{}").status == 401
    (line,) = lines_of(log.getvalue())
    assert figures(line) == {"RefusedRequests": (STACK, [{}])}


def test_a_wrong_token_and_other_requests_without_one_are_not_counted(cloud: Cloud, log: StringIO) -> None:
    assert Sender("larder_wrong")("GET", f"/v8/artifacts/{HASH}").status == 401
    assert Sender(None)("GET", "/v2/user").status == 401
    assert [figures(line) for line in lines_of(log.getvalue())] == [{}, {}]
