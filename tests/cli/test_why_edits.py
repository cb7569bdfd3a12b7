"""The edits of `larder why --fix`: only the list changes, whatever the file looks like."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from larder_proxy import jsonc

from larder.why.summaries import parse_summary
from larder_cli.why.edits import Definitions, unified_diff, with_line, with_list
from tests.larder.why.summaries import document, task_record

ENV = ("tasks", "build", "env")


@pytest.mark.parametrize(
    ("before", "path", "wanted", "after"),
    [
        ('{"tasks": {"build": {"env": ["A", "B"]}}}', ENV, ["B"], '{"tasks": {"build": {"env": ["B"]}}}'),
        ('{"tasks": {"build": {"env": ["A", "B"]}}}', ENV, ["A"], '{"tasks": {"build": {"env": ["A"]}}}'),
        ('{"tasks": {"build": {"env": ["A"]}}}', ENV, [], '{"tasks": {"build": {"env": []}}}'),
        ('{"tasks": {"build": {"env": ["A",]}}}', ENV, ["A", "B"], '{"tasks": {"build": {"env": ["A", "B",]}}}'),
        ('{"tasks": {"build": {}}}', ENV, ["A"], '{"tasks": {"build": { "env": ["A"] }}}'),
        ('{"tasks": {"build": {"a": 1}}}', ENV, ["A"], '{"tasks": {"build": {"a": 1, "env": ["A"]}}}'),
        ('\ufeff{"g": ["ä"]}\n', ("g",), ["ä", "é"], '\ufeff{"g": ["ä", "é"]}\n'),
        (  # An item on its own line goes with its comment, and other comments stay.
            '{\n  "g": [ // "x"\n    "A", // about A\n    "B" // about B\n  ]\n}',
            ("g",),
            ["A"],
            '{\n  "g": [ // "x"\n    "A" // about A\n  ]\n}',
        ),
        (
            '{\n  "g": [ // "x"\n    "A", // about A\n    "B" // about B\n  ]\n}',
            ("g",),
            ["B"],
            '{\n  "g": [ // "x"\n    "B" // about B\n  ]\n}',
        ),
        (
            '{\n  "g": [\n    "A" // about A\n  ]\n}',
            ("g",),
            ["A", "B"],
            '{\n  "g": [\n    "A", // about A\n    "B"\n  ]\n}',
        ),
        (
            '{\r\n\t"pipeline": {"build": {\r\n\t\t\t"env": ["A"], /* , */\r\n\t\t}}}',
            ("pipeline", "build", "inputs"),
            ["!a"],
            '{\r\n\t"pipeline": {"build": {\r\n\t\t\t"env": ["A"], /* , */\r\n\t\t\t"inputs": ["!a"],\r\n\t\t}}}',
        ),
        ('{"g": [/* none */]}', ("g",), ["A"], '{"g": [/* none */"A"]}'),
        ('{"g": [\n"A",\n"B"]}', ("g",), ["A"], '{"g": [\n"A"\n]}'),
    ],
)
def test_only_the_list_changes(before: str, path: tuple[str, ...], wanted: list[str], after: str) -> None:
    assert with_list(before.encode(), path, wanted).decode() == after


_NAMES = st.lists(st.sampled_from(["A", "B,", "//C", "D]", 'E"', "F"]), unique=True, max_size=4)
_GAPS = st.sampled_from(["", " ", "\n  ", " // ]\n", "/* , */", "\r\n"])


@given(old=_NAMES, new=_NAMES, gaps=st.lists(_GAPS, min_size=12, max_size=12), trailing=st.booleans())
def test_any_layout_gives_the_wanted_list(old: list[str], new: list[str], gaps: list[str], trailing: bool) -> None:
    gap = iter(gaps)
    items = ",".join(f"{next(gap)}{json.dumps(one)}{next(gap)}" for one in old)
    text = f'{{{next(gap)}"g":{next(gap)}[{items}{"," if trailing and old else ""}{next(gap)}], "other": [1]}}'
    edited = with_list(text.encode(), ("g",), new).decode()
    kept = [one for one in old if one in new]
    assert jsonc.parse(edited) == {"g": [*kept, *(one for one in new if one not in kept)], "other": [1]}


@pytest.mark.parametrize("text", ["{", "[]", '{"tasks": {}}', '{"tasks": {"build": {"env": "A"}}}', '{"tasks": 1}'])
def test_what_cannot_be_edited_is_an_error(text: str) -> None:
    with pytest.raises((ValueError, KeyError, TypeError, AttributeError)):
        with_list(text.encode(), ENV, ["A"])


def test_lines_of_ignore_files() -> None:
    assert with_line(None, "a") == b"a\n"
    assert with_line(b"b", "a") == b"b\na\n"
    assert with_line(b"b\r\n", "a", is_first=True) == b"a\r\nb\r\n"


def test_the_diff_can_be_applied() -> None:
    assert unified_diff("x", None, b"a\n") == "--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n"
    end = "\\ No newline at end of file\n"
    assert unified_diff("x", b"a", b"a\n") == f"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n{end}+a\n"


def test_the_definition_that_turbo_uses() -> None:
    files = {
        "turbo.jsonc": b'{"tasks": {"build": {"env": ["A"]}, "web#build": {"env": ["B"]}, "//#build": {"env": ["R"]}}}',
        "packages/lib/turbo.json": b'{"extends": ["//"], "tasks": {"build": {"inputs": ["src/**"]}}}',
        "packages/ui/turbo.json": b'{"extends": ["//"], "tasks": {"build": {"env": ["$TURBO_EXTENDS$", "C"]}}}',
        "packages/old/turbo.json": b'{"extends": ["//"]} // no tasks',
    }
    definitions = Definitions("turbo.jsonc", files.get)
    records = [
        task_record(f"{name}#build", "h") | {"directory": f"packages/{name}"} for name in ("lib", "ui", "web", "old")
    ]
    root = task_record("//#build", "h") | {"directory": "", "package": "//", "task": "build"}
    tasks = parse_summary(document(*records, root)).tasks
    build = ("turbo.jsonc", ENV)
    own = ("tasks", "build", "env")
    assert definitions.places(tasks["lib#build"], "env") == [build]
    assert definitions.places(tasks["old#build"], "env") == [build]
    assert definitions.places(tasks["ui#build"], "env") == [("packages/ui/turbo.json", own), build]
    assert definitions.places(tasks["web#build"], "env") == [("turbo.jsonc", ("tasks", "web#build", "env"))]
    assert definitions.places(tasks["//#build"], "env") == [("turbo.jsonc", ("tasks", "//#build", "env"))]
    # Where a list can be added: in the nearest definition.
    assert definitions.places(tasks["lib#build"], "outputs") == [
        ("packages/lib/turbo.json", ("tasks", "build", "outputs"))
    ]
    assert Definitions("turbo.json", {"turbo.json": b"{}"}.get).places(tasks["lib#build"], "env") == []
    pipeline = Definitions("turbo.json", {"turbo.json": b'{"pipeline": {"build": {}}}'}.get)
    assert pipeline.places(tasks["lib#build"], "env") == [("turbo.json", ("pipeline", "build", "env"))]
