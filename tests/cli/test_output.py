"""Tables, JSON and the progress counter."""

import json
from datetime import date, datetime, timedelta, timezone

import pytest

from larder_cli.output import print_record, print_table
from larder_cli.progress import counting


def shown(capsys: pytest.CaptureFixture[str], **record: object) -> dict[str, str]:
    print_record(record, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    return {label.strip(): value.strip() for label, value in (line.split("  ", 1) for line in lines)}


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (1500, "1.5 kB"),
        (999_949, "999.9 kB"),
        (999_950, "1.0 MB"),
        (50 * 10**9, "50.0 GB"),
        (5 * 10**18, "5,000.0 PB"),
    ],
)
def test_sizes_have_units(capsys: pytest.CaptureFixture[str], size: int, expected: str) -> None:
    assert shown(capsys, quota_bytes=size) == {"quota": expected}


@pytest.mark.parametrize(
    ("duration_ms", "expected"),
    [
        (0, "0.0 s"),
        (59_400, "59.4 s"),
        (90_000, "1 min 30 s"),
        (36_000_000, "10 h 0 min"),
        (172_799_000, "47 h 59 min"),
        (172_800_000, "2 d 0 h"),
        (10**11, "1,157 d 9 h"),
    ],
)
def test_durations_have_units(capsys: pytest.CaptureFixture[str], duration_ms: int, expected: str) -> None:
    assert shown(capsys, time_saved_ms=duration_ms) == {"time saved": expected}


def test_times_are_in_utc(capsys: pytest.CaptureFixture[str]) -> None:
    moment = datetime(2026, 1, 2, 1, 30, tzinfo=timezone(timedelta(hours=2)))
    assert shown(capsys, created_at=moment) == {"created": "2026-01-01 23:30:00 UTC"}
    print_record({"created_at": moment, "day": date(2026, 1, 2)}, as_json=True)
    assert json.loads(capsys.readouterr().out) == {"created_at": "2026-01-01T23:30:00.000Z", "day": "2026-01-02"}


def test_other_values(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, team=None, enabled=True, objects=1_234_567, rights={"a": ("r", "w")}) == {
        "team": "-",
        "enabled": "yes",
        "objects": "1,234,567",
        "rights": "a=r,w",
    }


def test_a_piped_table_has_no_colour_and_no_folded_line(capsys: pytest.CaptureFixture[str]) -> None:
    records = [{"id": "x" * 200, "name": "n" * 200, "size_bytes": 1}]
    print_table(records, ("id", "name", "size_bytes"), empty="none", as_json=False)
    output = capsys.readouterr().out
    assert "\x1b" not in output
    assert f"{'x' * 200}   {'n' * 200}    1 B" in output


def test_an_empty_table_says_so_but_its_json_is_a_list(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([], ("id",), empty="there are none", as_json=False)
    assert capsys.readouterr().out == "there are none\n"
    print_table([], ("id",), empty="there are none", as_json=True)
    assert capsys.readouterr().out == "[]\n"


def test_json_rejects_unknown_types(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(TypeError):
        print_record({"what": object()}, as_json=True)


def test_a_count_without_a_terminal_is_printed_as_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with counting("objects", line_every_s=0) as count:
        count(12_000)
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("12,000 objects, ")


def test_a_short_count_without_a_terminal_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    with counting("objects") as count:
        count(1)
    assert capsys.readouterr().err == ""
