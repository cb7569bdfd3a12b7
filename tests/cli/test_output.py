"""Tables, JSON and the progress counter."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, date, datetime, timedelta, timezone
from functools import partial
from typing import Any

import click
import pytest
from rich.console import Console

from larder_cli.output import WIDE, linked, print_record, print_table
from larder_cli.progress import counting


def shown(capsys: pytest.CaptureFixture[str], **record: object) -> dict[str, str]:
    print_record(record, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    return {label.strip(): value.strip() for label, value in (line.split("  ", 1) for line in lines)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("docs/operations.md, ApiFailing", "{}/operations{}#apifailing"),
        ("see docs/clients/turbo.md.", "see {}/clients/turbo{}."),
        ("(docs/operator-cli.md, Permissions in AWS)", "({}/operator-cli{}#permissions-in-aws)"),
        ("docs/operations.md, DeadLetters (the log)", "{}/operations{}#deadletters (the log)"),
        ("aws lambda list-functions", "aws lambda list-functions"),
    ],
)
def test_advice_links_to_the_documentation_of_the_deployment(text: str, expected: str) -> None:
    assert linked(text, "https://cache.example.com/") == expected.format("https://cache.example.com/docs", "")
    assert linked(text, "") == expected.format("docs", ".md")


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


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[..., AbstractContextManager[None]]:
    """The output is a terminal with so many columns, for a command with `--wide`."""

    @contextmanager
    def terminal(columns: int, *, wide: bool = False) -> Iterator[None]:
        console = partial(Console, width=columns, force_terminal=True, no_color=True, highlight=False)
        monkeypatch.setattr("larder_cli.output._console", console)
        with click.Context(click.Command("list")) as context:
            context.meta[WIDE] = wide
            yield

    return terminal


TEXTS = {
    "name": "The key of all jobs of the web team",
    "id": "TAO1JN6hTkRMkI9oV3xxxxxxxxxxxxxx",
    "created_at": datetime(2026, 1, 2, tzinfo=UTC),
    "rights": {"artifacts": ("read", "write")},
    "used_at": None,
    "size_bytes": 1500,
}


@pytest.mark.parametrize(
    ("columns", "fits", "left_out"),
    [
        (60, ["TAO1JN6hTkRMkI9oV3xxxxxxxxxxxxxx"], "created, rights, size"),
        (80, ["TAO1JN6hTkRMkI9oV3xxxxxxxxxxxxxx", "2026-01-02 00:00:00 UTC"], "rights, size"),
        (120, ["TAO1JN6hTkRMkI9oV3xxxxxxxxxxxxxx", "2026-01-02 00:00:00 UTC", "artifacts=read,write", "1.5 kB"], ""),
        (200, ["The key of all jobs of the web team   TAO1JN6hTkRMkI9oV3xxxxxxxxxxxxxx   2026-01-02"], ""),
    ],
)
def test_a_table_fits_the_terminal_and_only_names_are_wrapped(
    terminal: Any, capsys: pytest.CaptureFixture[str], columns: int, fits: list[str], left_out: str
) -> None:
    with terminal(columns):
        print_table([TEXTS], TEXTS, empty="", as_json=False)
    lines = click.unstyle(capsys.readouterr().out).splitlines()
    assert max(map(len, lines[:-1])) <= columns
    assert all(any(text in line for line in lines) for text in fits)
    hint = f"Left out: {left_out}. --wide shows all columns."
    assert (lines[-1] == hint) == bool(left_out)
    # No record has a value there.
    assert "used" not in lines[0]


def test_wide_shows_all_columns(terminal: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with terminal(20, wide=True):
        print_table([{"id": "x" * 30, "name": "two words", "at": None}], ("id", "name", "at"), empty="", as_json=False)
    assert f"{'x' * 30}   two words   -" in capsys.readouterr().out


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
