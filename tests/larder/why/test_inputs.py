"""The inputs in a report lead to the causes of the two files."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larder.why.causes import Cause, Kind
from larder.why.comparison import compare
from larder.why.hints import FileHint, Hint, Hints
from larder.why.inputs import MAX_FILES, document_of, hints_of, report_of, summary_of
from larder.why.records import record
from larder.why.summaries import InvalidSummary, Summary, parse_summary

from .summaries import document, summary, task_record, variables

SECRET = "hunter2-in-plain-sight"
DIGEST = hashlib.sha256(SECRET.encode()).hexdigest()
NAMES = ("lib#build", "ui#build", "web#build", "lib#test")

_files = st.dictionaries(
    st.sampled_from(["package.json", "src/a.js", "src/A.js", "../x"]), st.sampled_from(["1" * 40, "2" * 40])
)
_listed = st.lists(st.sampled_from(["A", "B", "NEXT_PUBLIC_*"]), max_size=2)
_pairs = st.lists(st.sampled_from(["A=1", "B=2", "B=3", "C="]), max_size=3, unique_by=lambda one: one[0]).map(tuple)
# turbo hashes a variable once, whether it is configured, inferred or both.
_inferred = st.lists(st.sampled_from(["I=1", "J="]), max_size=2, unique=True).map(tuple)
_variables = st.builds(
    lambda configured, inferred, env, passed: variables(configured, inferred, env=env, passThroughEnv=passed),
    *(_pairs, _inferred, _listed, st.none() | _listed),
)
_task = st.fixed_dictionaries(
    {},
    optional={
        "hash": st.sampled_from(["1" * 16, "2" * 16]),
        "inputs": _files,
        "command": st.sampled_from(["a", "b"]),
        "directory": st.sampled_from(["packages/lib", "libs/lib"]),
        "dependencies": st.lists(st.sampled_from(NAMES), max_size=2, unique=True),
        "hashOfExternalDependencies": st.sampled_from(["3" * 16, ""]),
        "envMode": st.sampled_from(["strict", "loose"]),
        "cache": st.sampled_from([{"status": "MISS"}, {"status": "HIT", "timeSaved": 7}]),
    },
)
_shared = st.fixed_dictionaries(
    {},
    optional={
        "files": _files,
        "environmentVariables": _variables,
        "engines": st.sampled_from([None, {"node": "22"}, {"node": "24"}]),
        "rootKey": st.sampled_from(["a", "b"]),
        "hashOfInternalDependencies": st.sampled_from(["", "4" * 16]),
        "globalDotEnv": st.none() | st.just([".env"]),
    },
)


@st.composite
def _runs(draw: st.DrawFn) -> Summary:
    tasks, arguments = [], draw(st.sampled_from([[], ["--watch"], ["--watch", "-v"]]))
    for id in draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True)):
        listed = draw(_variables)
        definition = {
            "outputs": draw(st.sampled_from([["dist/**"], []])),
            "cache": draw(st.booleans()),
            "dependsOn": draw(st.sampled_from([["^build"], []])),
            "env": listed["specified"]["env"],
            "passThroughEnv": listed["specified"]["passThroughEnv"],
        }
        own = {"environmentVariables": listed, "resolvedTaskDefinition": definition, "cliArguments": arguments}
        tasks.append(task_record(id, "0" * 16, **own) | draw(_task))
    changes = {"envMode": draw(st.sampled_from(["strict", "loose", "infer"]))}
    return parse_summary(document(*tasks, shared=draw(_shared), **changes))


def reported(run: Summary, hints: Hints | None = None) -> Summary:
    """What the server makes of the report of a run."""
    return summary_of(json.loads(json.dumps(report_of(run, hints=hints))))


@given(base=_runs(), run=_runs())
def test_a_report_has_the_causes_of_the_file(base: Summary, run: Summary) -> None:
    files, reports = compare(base, run), compare(reported(base), reported(run))
    assert [_without_texts(cause) for cause in reports.causes] == [_without_texts(cause) for cause in files.causes]
    for name in ("changed", "restored", "new", "gone", "same_hash"):
        assert getattr(reports, name) == getattr(files, name)


def _without_texts(cause: Cause) -> Cause:
    """Arguments and engines are digests in a report, so it says only that they changed."""
    return replace(cause, values=()) if cause.kind in (Kind.ARGUMENTS, Kind.ENGINES) else cause


def test_what_a_report_says_of_digests_is_that_they_changed() -> None:
    base = summary(task_record("lib#build", "1", cliArguments=["-v"]))
    run = summary(task_record("lib#build", "2", cliArguments=["--watch"]))
    (cause,) = record(compare(reported(base), reported(run)))["causes"]
    assert (cause["kind"], cause["how"], cause["values"]) == (Kind.ARGUMENTS, "changed", [])


def test_secrets_are_not_in_a_report() -> None:
    """Of values that are hashed it has turbo's digest, which the server replaces."""
    named = f"TOKEN={DIGEST}"
    everywhere = variables((named,), (named,), (named,), env=["TOKEN"], passThroughEnv=["TOKEN"])
    task = task_record(
        "lib#build",
        "1",
        command=f"deploy --token {SECRET}",
        cliArguments=[SECRET, DIGEST],
        environmentVariables=everywhere,
    )
    file = document(task, shared={"environmentVariables": everywhere}, user=SECRET)
    text = json.dumps(report_of(parse_summary(file)))
    assert SECRET not in text
    assert text.count(DIGEST) == 2, "once of the task, once of all tasks"
    passed_only = variables((), (), (named,))
    task["environmentVariables"] = file["globalCacheInputs"]["environmentVariables"] = passed_only
    assert DIGEST not in json.dumps(report_of(parse_summary(file)))


def test_tasks_share_lists_and_definitions() -> None:
    files = {f"src/{number}.js": f"{number:040x}" for number in range(40)}
    tasks = [
        task_record(f"p{number // 3}#{name}", f"{number:016x}", inputs=files)
        for number in range(300)
        for name in (("build", "lint", "test")[number % 3],)
    ]
    inputs = document_of(summary(*tasks))
    assert (len(inputs["files"]), len(inputs["definitions"])) == (100, 1)
    report = json.dumps(report_of(summary(*tasks)), separators=(",", ":"))
    assert len(gzip.compress(report.encode())) < 60_000


def test_a_list_that_is_too_long_is_one_digest() -> None:
    few, many = {"a.js": "1" * 40}, {f"{number}.js": "2" * 40 for number in range(MAX_FILES)}
    tasks = [task_record("lib#build", "1", inputs=few), task_record("web#build", "1", inputs=many)]
    base = summary(*tasks)
    first, second = document_of(base)["files"]
    assert first["files"] == {"a.js": "1" * 12}
    assert list(second["files"]) == [""]
    changed = [task | {"hash": "2", "inputs": {**task["inputs"], "a.js": "3" * 40}} for task in tasks]
    subjects = [one.subject for one in compare(reported(base), reported(summary(*changed))).causes]
    assert subjects == ["packages/lib/a.js", "packages/web/"]
    short = summary(tasks[0], tasks[1] | {"hash": "2", "inputs": few})
    (cause,) = compare(reported(base), reported(short)).causes
    assert (cause.subject, cause.how) == ("packages/web/", "changed")


def test_hints_of_files_and_packages() -> None:
    hints = Hints(
        files={"a": FileHint(hint=Hint.UNTRACKED), "b": FileHint(commit="9f2c1d0")},
        packages={"packages/lib": ("lodash 4.17.20 -> 4.17.21",)},
    )
    found = hints_of(report_of(summary(task_record("lib#build", "1")), hints=hints))
    assert found == replace(hints, files={"a": FileHint(hint=Hint.UNTRACKED)})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"files": 1}, "inputs.tasks.0.files must be a place in the list"),
        ({"definition": -1}, "inputs.tasks.0.definition must be a place in the list"),
    ],
)
def test_places_outside_of_the_lists(changes: Mapping[str, int], message: str) -> None:
    report = report_of(summary(task_record("lib#build", "1")))
    report["inputs"]["tasks"][0] |= changes
    with pytest.raises(InvalidSummary, match=message):
        summary_of(report)


def test_the_tasks_of_a_report_and_of_its_inputs_are_the_same() -> None:
    report: dict[str, Any] = report_of(summary(task_record("lib#build", "1")))
    report["inputs"]["tasks"] *= 2
    with pytest.raises(InvalidSummary, match="an entry for each"):
        summary_of(report)
    report["tasks"] *= 2
    with pytest.raises(InvalidSummary, match=r"tasks.1 has the package and the task of another"):
        summary_of(report)
