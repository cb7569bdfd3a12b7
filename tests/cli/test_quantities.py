"""Parsing sizes, durations, permissions and JSON."""

from datetime import UTC, datetime, timedelta, timezone

import click
import pytest

from larder_cli.quantities import (
    json_value,
    moment,
    period,
    period_ms,
    permission,
    seconds,
    seconds_or_none,
    size_bytes,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-21", datetime(2026, 11, 21, tzinfo=UTC)),
        ("2026-11-21T14:00", datetime(2026, 11, 21, 14, tzinfo=UTC)),
        (" 2026-11-21 14:00:30 ", datetime(2026, 11, 21, 14, 0, 30, tzinfo=UTC)),
        ("2026-11-21T14:00+01:00", datetime(2026, 11, 21, 14, tzinfo=timezone(timedelta(hours=1)))),
    ],
)
def test_times_are_in_utc_unless_they_name_a_zone(text: str, expected: datetime) -> None:
    assert moment(text) == expected


@pytest.mark.parametrize("text", ["", "yesterday", "14:00", "2026-13-01", "21.11.2026"])
def test_other_texts_are_no_times(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a time"):
        moment(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("1024", 1024),
        ("500 B", 500),
        ("1kB", 1000),
        ("1KB", 1000),
        ("500MB", 500 * 10**6),
        ("50GB", 50 * 10**9),
        ("50 gb", 50 * 10**9),
        ("50G", 50 * 10**9),
        ("1.5TB", 1_500_000_000_000),
        ("0.1 GB", 100_000_000),
        ("2PB", 2 * 10**15),
        ("1KiB", 1024),
        ("50GiB", 50 * 2**30),
        ("1.5 MiB", 1_572_864),
        (" 7 MB ", 7 * 10**6),
    ],
)
def test_sizes(text: str, expected: int) -> None:
    assert size_bytes(text) == expected


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "1 XB", "1iB", "1,5GB", "1e9", "1GBB", "NaN"])
def test_invalid_sizes(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a size"):
        size_bytes(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("90s", 90), ("30m", 1800), ("12h", 43_200), ("30d", 2_592_000), ("4w", 2_419_200), ("1 D", 86_400)],
)
def test_durations(text: str, expected: int) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "30", "d", "1.5d", "-1d", "1y", "0s", "36501d", "999999999w"])
def test_invalid_durations(text: str) -> None:
    with pytest.raises(click.BadParameter):
        seconds(text)


@pytest.mark.parametrize(
    ("text", "expected"), [("0", 0), (" 0 ", 0), ("0s", 0), ("90s", 90), ("36500d", 3_153_600_000)]
)
def test_durations_or_zero(text: str, expected: int) -> None:
    assert seconds_or_none(text) == expected


@pytest.mark.parametrize("text", ["", "00", "-1s", "36501d"])
def test_invalid_durations_or_zero(text: str) -> None:
    with pytest.raises(click.BadParameter):
        seconds_or_none(text)


@pytest.mark.parametrize(
    ("text", "expected"), [("90s", "90s"), ("60s", "1m"), ("60m", "1h"), ("24h", "1d"), ("36h", "36h"), ("1w", "7d")]
)
def test_a_period_is_shown_in_the_largest_exact_unit(text: str, expected: str) -> None:
    assert period(period_ms(text)) == expected
    assert period_ms(expected) == period_ms(text)


@pytest.mark.parametrize(("duration_ms", "expected"), [(1_500, "1500ms"), (1, "1ms"), (0, "0ms")])
def test_a_fraction_of_a_second_is_shown_in_milliseconds(duration_ms: int, expected: str) -> None:
    assert period(duration_ms) == expected


def test_the_longest_period() -> None:
    assert period_ms("10000d") == 864_000_000_000
    with pytest.raises(click.BadParameter, match="from 1s to 10000d"):
        period_ms("10001d")
    with pytest.raises(click.BadParameter, match="from 1s to 10000d"):
        period_ms("0s")


@pytest.mark.parametrize(
    ("text", "expected"), [('{"a": [1, 2.5, "ü"]}', {"a": [1, 2.5, "ü"]}), ('"text"', "text"), ("null", None)]
)
def test_json(text: str, expected: object) -> None:
    assert json_value(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "{", "{'a': 1}", "repo=web", "NaN", "[-Infinity]", "1e999", "9" * 5000, "[" * 100_000],
    ids=lambda text: text[:12],
)
def test_invalid_json(text: str) -> None:
    with pytest.raises(click.BadParameter, match="not valid JSON"):
        json_value(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("artifacts=red", "artifacts has no action red: use read, write, manage"),
        ("artifacts=read,delete,purge", "artifacts has no action delete, purge"),
        ("teams=manage", "teams has no action manage: use read, write"),
    ],
)
def test_larders_own_resources_have_no_other_actions(text: str, expected: str) -> None:
    with pytest.raises(click.BadParameter, match=expected):
        permission(text)


def test_permissions() -> None:
    assert permission("artifacts=read,write") == ("artifacts", ("read", "write"))
    assert permission(" artifacts = read , write ") == ("artifacts", ("read", "write"))


@pytest.mark.parametrize("text", ["", "artifacts", "artifacts=", "=read", "artifacts=read,"])
def test_invalid_permissions(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a permission"):
        permission(text)
