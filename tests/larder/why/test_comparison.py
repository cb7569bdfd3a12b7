"""The causes of other hashes. tests/e2e/test_why.py compares what the real turbo writes."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import pairwise, starmap
from typing import Any

import pytest

from larder.why.causes import ADVICE, Cause, Class, Kind
from larder.why.comparison import Comparison, Note, changed_files, compare
from larder.why.hints import FileHint, Hint, Hints
from larder.why.summaries import InvalidSummary, parse_summary

from .summaries import document, summary, task_record, variables

CHANGED = {"package.json": "1" * 40, "src/a.js": "3" * 40}
LIB = task_record("lib#build", "l1")
UI = task_record("ui#build", "u1", "lib#build")
WEB = task_record("web#build", "w1", "ui#build")
OTHERS = (task_record("ui#build", "u2", "lib#build"), task_record("web#build", "w2", "ui#build"))


def only(comparison: Comparison) -> Cause:
    (cause,) = comparison.causes
    return cause


def compared(old: dict[str, Any], **changes: Any) -> Comparison:
    """Of one task with these changes and another hash."""
    return compare(summary(old), summary(old | {"hash": "other"} | changes))


def test_the_same_hashes_have_no_cause() -> None:
    comparison = compare(summary(LIB, UI), summary(LIB, UI))
    assert (comparison.changed, comparison.causes) == ((), ())
    assert comparison.same_hash == ("lib#build", "ui#build")


def test_a_cause_reaches_the_tasks_that_depend_on_it() -> None:
    lib = task_record("lib#build", "l2", inputs=CHANGED)
    cause = only(compare(summary(LIB, UI, WEB), summary(lib, *OTHERS)))
    assert (cause.kind, cause.subject, cause.how) == (Kind.FILE, "packages/lib/src/a.js", "changed")
    assert (cause.direct, cause.below) == (("lib#build",), ("ui#build", "web#build"))
    assert (cause.alone, cause.build_ms) == (3, 3_000)


def test_tasks_with_another_cause_are_not_alone() -> None:
    lib = task_record("lib#build", "l2", inputs=CHANGED)
    web = task_record("web#build", "w2", "ui#build", inputs=CHANGED)
    first, second = compare(summary(LIB, UI, WEB), summary(lib, OTHERS[0], web)).causes
    assert (first.subject, first.tasks, first.alone) == ("packages/lib/src/a.js", 3, 2)
    assert (second.subject, second.tasks, second.alone) == ("packages/web/src/a.js", 1, 0)


def test_what_a_new_dependency_brings_belongs_to_the_dependency() -> None:
    """Undoing it brings the hash back, whatever else changed in the task that it added."""
    lib = task_record("lib#build", "l2", inputs=CHANGED)
    old = task_record("ui#lint", "u1")
    new = task_record("ui#lint", "u2", "lib#build")
    new["resolvedTaskDefinition"] = old["resolvedTaskDefinition"] | {"dependsOn": ["lib#build"]}
    causes = {cause.subject: cause for cause in compare(summary(LIB, old), summary(lib, new)).causes}
    assert causes["dependsOn"].values == ("+lib#build",)
    assert causes["dependsOn"].direct == ("ui#lint",)
    assert (causes["dependsOn"].alone, causes["packages/lib/src/a.js"].tasks) == (1, 1)


def test_a_dependency_of_package_json() -> None:
    old, new = task_record("api#build", "a1"), task_record("api#build", "a2", "ui#build")
    new["inputs"] = old["inputs"] | {"package.json": "9" * 40}
    cause = only(compare(summary(old, UI), summary(new, UI)))
    assert cause.hints == ((Hint.DEPENDENCIES, ("+ui#build",)),)
    assert cause.advice == "workspace-dependency"
    cause = only(compare(summary(old, UI), summary(new | {"inputs": old["inputs"]}, UI)))
    assert (cause.kind, cause.values) == (Kind.EDGE, ("+ui#build",))


def test_files_that_changed_alike_are_one_cause() -> None:
    new = {"package.json": "1" * 40, "src/a.js": "3" * 40, **{f"b{n}.js": "4" * 40 for n in range(3)}}
    old = new | {"src/a.js": "2" * 40, **{f"b{n}.js": "5" * 40 for n in range(3)}}
    base, run = summary(LIB | {"inputs": old}), summary(LIB | {"inputs": new, "hash": "l2"})
    paths = [f"packages/lib/{name}" for name in ("b0.js", "b1.js", "b2.js", "src/a.js")]
    assert sorted(changed_files(base, run)) == paths
    cause = only(compare(base, run))
    assert [cause.subject, *cause.more] == paths
    hints = Hints(files={paths[0]: FileHint(hint=Hint.UNTRACKED)}, committed=set(paths[1:3]))
    found = compare(base, run, hints).causes
    assert [(one.subject, len(one.more), one.class_) for one in found] == [
        (paths[0], 0, Class.SETUP),
        (paths[1], 1, Class.CODE),
        (paths[3], 0, Class.SETUP),
    ]


def test_line_endings_of_several_packages_are_one_cause() -> None:
    tasks = (LIB | {"hash": "l2", "inputs": CHANGED}, UI | {"hash": "u2", "inputs": CHANGED})
    paths = ("packages/lib/src/a.js", "packages/ui/src/a.js")
    base, run = summary(LIB, UI), summary(*tasks)
    assert len(compare(base, run).causes) == 2
    hints = Hints(files=dict.fromkeys(paths, FileHint(hint=Hint.LINE_ENDINGS)))
    cause = only(compare(base, run, hints))
    assert (cause.subject, *cause.more) == paths
    assert (cause.direct, cause.alone) == (("lib#build", "ui#build"), 2)


def test_the_commit_is_named_if_it_is_that_of_all_files() -> None:
    old = LIB["inputs"] | {"b.js": "1" * 40}
    base, run = summary(LIB | {"inputs": old}), summary(LIB | {"hash": "l2", "inputs": CHANGED})
    files = {"packages/lib/src/a.js": FileHint(commit="9f2c1d0")}
    commits = {cause.how: cause.commit for cause in compare(base, run, Hints(files=files)).causes}
    assert commits == {"changed": "9f2c1d0", "removed": None}


def test_a_name_in_another_letter_case() -> None:
    new = {"package.json": "1" * 40, "src/A.js": "2" * 40}
    cause = only(compared(LIB, inputs=new))
    assert (cause.subject, cause.how) == ("packages/lib/src/A.js", "renamed")
    assert cause.advice == "letter-case"
    other = compared(LIB, inputs=new | {"src/A.js": "7" * 40})
    assert [one.how for one in other.causes] == ["added", "removed"]


@pytest.mark.parametrize(
    ("changes", "kind", "subject", "values"),
    [
        ({"hashOfExternalDependencies": "other"}, Kind.EXTERNAL, "lib", ()),
        ({"cliArguments": ["--watch"]}, Kind.ARGUMENTS, "", ("[] -> ['--watch']",)),
        ({"envMode": "loose"}, Kind.TASK_ENV_MODE, "", ("strict -> loose",)),
        ({"directory": "libs/lib"}, Kind.MOVED, "lib", ("packages/lib -> libs/lib",)),
        ({"environmentVariables": variables(("A=1",))}, Kind.ENV, "A", ()),
        ({"environmentVariables": variables((), ("B=1",))}, Kind.ENV, "B", ()),
        (
            {"resolvedTaskDefinition": LIB["resolvedTaskDefinition"] | {"outputs": ["lib/**"]}},
            Kind.DEFINITION,
            "outputs",
            ("+lib/**", "-dist/**"),
        ),
    ],
)
def test_the_record_of_a_task(changes: dict[str, Any], kind: Kind, subject: str, values: tuple[str, ...]) -> None:
    cause = only(compared(LIB, **changes))
    assert (cause.kind, cause.subject, cause.values) == (kind, subject, values)
    assert cause.advice in ADVICE


@pytest.mark.parametrize(
    ("shared", "changes", "kind", "subject"),
    [
        ({"files": {"tsconfig.json": "1"}}, {}, Kind.GLOBAL_FILE, "tsconfig.json"),
        ({"environmentVariables": variables(("A=1",))}, {}, Kind.GLOBAL_ENV, "A"),
        ({"environmentVariables": variables(env=["A"])}, {}, Kind.TURBO_JSON, "globalEnv"),
        ({"hashOfExternalDependencies": "other"}, {}, Kind.GLOBAL_EXTERNAL, ""),
        ({"hashOfInternalDependencies": "other"}, {}, Kind.GLOBAL_INTERNAL, ""),
        ({"engines": {"node": "22"}}, {}, Kind.ENGINES, "engines"),
        ({}, {"envMode": "loose"}, Kind.ENV_MODE, ""),
        ({}, {"frameworkInference": False}, Kind.FRAMEWORK, ""),
    ],
)
def test_what_enters_every_hash(shared: dict[str, Any], changes: dict[str, Any], kind: Kind, subject: str) -> None:
    """It is no cause if a single hash stays the same."""
    tasks = (LIB | {"hash": "l2"}, UI | {"hash": "u2"})
    cause = only(compare(summary(LIB, UI), summary(*tasks, shared=shared, **changes)))
    assert (cause.kind, cause.subject, cause.tasks, cause.alone) == (kind, subject, 2, 2)
    mixed = compare(summary(LIB, UI), summary(tasks[0], UI, shared=shared, **changes))
    assert only(mixed).kind is Kind.UNKNOWN
    assert Note(note="not_hashed", subject=subject, kind=kind) in mixed.notes


def test_another_algorithm_hides_all_else() -> None:
    run = summary(
        LIB | {"hash": "l2", "inputs": CHANGED},
        shared={"rootKey": "another", "files": {"a": "1"}},
        turboVersion="3.0.0",
    )
    cause = only(compare(summary(LIB), run))
    assert (cause.kind, cause.values) == (Kind.TURBO_VERSION, ("2.11.11 -> 3.0.0",))


def test_nothing_is_guessed() -> None:
    cause = only(compared(LIB))
    assert (cause.kind, cause.subject, cause.hints) == (Kind.UNKNOWN, "", ())
    missing = only(compared(UI))
    assert missing.hints == ((Hint.MISSING_DEPENDENCY, ("lib#build",)),)
    newer = compare(summary(LIB), summary(LIB | {"hash": "l2"}, turboVersion="2.12.0"))
    assert only(newer).hints == ((Hint.OTHER_VERSION, ("2.11.11 -> 2.12.0",)),)


def test_with_names_only_a_variable_is_suspected() -> None:
    """The one whose name says that it changes first, then those of the most tasks."""
    lib, ui = (
        {**task, "hash": "2", "environmentVariables": {"configured": names, "inferred": []}}
        for task, names in ((LIB, ["B=set", "A_SHA=set", "EMPTY="]), (UI, ["B=set", "C=set"]))
    )
    found = only(compare(summary(LIB | lib | {"hash": "1"}, UI | ui | {"hash": "1"}), summary(lib, ui)))
    assert (found.kind, found.subject, found.more) == (Kind.VALUE, "A_SHA", ("B", "C"))
    assert (found.advice, found.class_, found.tasks) == ("unknown-value", None, 2)


@pytest.mark.parametrize(
    ("name", "is_volatile"),
    [
        ("NEXT_PUBLIC_SHA", True),
        ("GITHUB_RUN_ID", True),
        ("build_timestamp", True),
        ("SHARED_KEY", False),
        ("UPDATE_URL", False),
        ("CANDIDATE", False),
    ],
)
def test_names_of_variables_that_always_change(name: str, is_volatile: bool) -> None:
    old = LIB | {"environmentVariables": variables((f"{name}=1",))}
    cause = only(compared(old, environmentVariables=variables((f"{name}=2",))))
    assert (cause.advice == "volatile-variable") is is_volatile
    assert cause.class_ is Class.SETUP


def test_a_variable_that_turbo_json_names_in_one_run_only() -> None:
    """Its value enters the hash because of turbo.json, so undoing that change is enough."""
    definition = LIB["resolvedTaskDefinition"]
    for listed, added in (("A", variables(("A=1",), env=["A"])), ("A_*", variables(("A_B=1",), env=["A_*"]))):
        named = {"resolvedTaskDefinition": definition | {"env": [listed]}, "environmentVariables": added}
        assert only(compared(LIB, **named)).values == (f"+{listed}",)
    excluded = ["!NEXT_PUBLIC_A"]
    cause = only(
        compared(
            LIB | {"environmentVariables": variables((), ("NEXT_PUBLIC_A=1",))},
            resolvedTaskDefinition=definition | {"env": excluded},
            environmentVariables=variables(env=excluded),
        )
    )
    assert (cause.kind, cause.values) == (Kind.DEFINITION, ("+!NEXT_PUBLIC_A",))


def test_packages_of_the_lockfile() -> None:
    tasks = [LIB | {"hashOfExternalDependencies": "1"}, UI | {"hashOfExternalDependencies": "2"}]
    others = [one | {"hash": "x", "hashOfExternalDependencies": f"{n}"} for n, one in enumerate(tasks, 8)]
    base = summary(*tasks)
    named = Hints(packages={"packages/lib": ("lodash 4.17.20 -> 4.17.21",)})
    cause = only(compare(base, summary(others[0], tasks[1]), named))
    assert cause.hints == ((Hint.PACKAGES, ("lodash 4.17.20 -> 4.17.21",)),)
    every = only(compare(base, summary(*others), named))
    assert (every.direct, every.advice) == (("lib#build", "ui#build"), "lockfile")
    api = task_record("api#build", "a" * 16) | {"hashOfExternalDependencies": "3"}
    two = only(compare(summary(*tasks, api), summary(*others, api)))
    assert (two.subject, two.more, two.advice) == ("lib", ("ui",), "external-packages")
    different = compare(summary(*tasks, api), summary(*others, api), named)
    assert [(one.subject, one.more) for one in different.causes] == [("lib", ()), ("ui", ())]
    lost = summary(*others, shared={"hashOfExternalDependencies": "", "files": {"package.json": "1"}})
    assert only(compare(base, lost)).advice == "missing-lockfile"


def test_what_turbo_does_not_hash_is_a_note() -> None:
    old = LIB | {"environmentVariables": variables(passed=("TOKEN=1",))}
    new = old | {"environmentVariables": variables(passed=("TOKEN=2",))}
    new["resolvedTaskDefinition"] = LIB["resolvedTaskDefinition"] | {"cache": False}
    comparison = compare(summary(old), summary(new))
    assert [(note.note, note.subject) for note in comparison.notes] == [
        ("not_cached", ""),
        ("not_hashed", "cache"),
        ("passed_variable", "TOKEN"),
    ]
    assert (comparison.causes, comparison.same_hash) == ((), ())


def test_tasks_of_one_run() -> None:
    comparison = compare(summary(LIB, UI), summary(LIB, WEB))
    assert (comparison.new, comparison.gone) == (("web#build",), ("ui#build",))


def test_the_cost_of_a_cause() -> None:
    """A restored task costs nothing. A dry run has the times of the baseline, of which a hit has the time saved."""
    lib = LIB | {"hash": "l2", "inputs": CHANGED}
    hit = {"status": "HIT", "timeSaved": 70_000}
    restored = compare(summary(LIB), summary(lib | {"cache": hit}))
    assert (only(restored).build_ms, restored.restored) == (0, ("lib#build",))
    dry = lib | {"execution": None}
    assert only(compare(summary(LIB), summary(dry))).build_ms == 1_000
    assert only(compare(summary(LIB | {"cache": hit}), summary(dry))).build_ms == 70_000


def test_global_causes_come_first_and_then_the_expensive_ones() -> None:
    slow = {"startTime": 0, "endTime": 60_000}
    tasks = (LIB | {"hash": "l2", "inputs": CHANGED}, task_record("api#build", "a2", inputs=CHANGED, execution=slow))
    base = summary(LIB, task_record("api#build", "a1"))
    run = summary(*tasks, shared={"files": {"tsconfig.json": "1"}})
    subjects = [cause.subject for cause in compare(base, run).causes]
    assert subjects == ["tsconfig.json", "packages/api/src/a.js", "packages/lib/src/a.js"]


def test_dependencies_in_a_circle_come_to_an_end() -> None:
    old = (task_record("a#build", "1", "b#build"), task_record("b#build", "1", "a#build"))
    new = (old[0] | {"hash": "2", "inputs": CHANGED}, old[1] | {"hash": "2"})
    assert compare(summary(*old), summary(*new)).causes


def test_the_time_grows_with_the_size_of_the_summaries() -> None:
    """Relative to reading them: 1,002 tasks whose 40 inputs all changed, and a chain deeper than Python's stack."""
    files = {f"src/file-{number}.ts": "1" * 40 for number in range(40)}
    names = [f"p{number}#{task}" for number in range(334) for task in ("build", "test", "lint")]
    wide = [task_record(name, "1", inputs=files) for name in names]
    others = [one | {"hash": "2", "inputs": dict.fromkeys(files, "2" * 40)} for one in wide]
    ratio, comparison = time_of(wide, others)
    assert sum(len(cause.more) + 1 for cause in comparison.causes) == 334 * 40
    assert ratio < 50

    names = [f"p{number}#build" for number in range(2_000)]
    chain = [task_record(names[0], "1"), *starmap(next_in_chain, pairwise(names))]
    ratio, comparison = time_of(chain, [one | {"hash": "2", "inputs": CHANGED} for one in chain])
    assert comparison.causes[0].tasks == 2_000
    assert ratio < 200


def next_in_chain(above: str, name: str) -> dict[str, Any]:
    return task_record(name, "1", above)


def time_of(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> tuple[float, Comparison]:
    """The processor time of the comparison, as a multiple of that of the parsing."""
    documents = document(*old), document(*new)
    started = time.process_time()
    base, run = map(parse_summary, documents)
    read = time.process_time()
    comparison = compare(base, run)
    return (time.process_time() - read) / (read - started), comparison


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": "2"}, "its format is version '2'"),
        ({"version": None}, "no run summary"),
        ({"tasks": {}}, "tasks must be a list"),
        ({"tasks": [LIB, LIB]}, r"tasks\.1 has the id of another task"),
        ({"tasks": [LIB | {"hash": None}]}, r"tasks\.0 must have an id and a hash"),
        ({"tasks": [LIB | {"inputs": {"a": 1}}]}, r"tasks\.0\.inputs must have a text"),
        ({"tasks": [LIB | {"dependencies": [1]}]}, r"tasks\.0\.dependencies must be a list"),
        ({"execution": {"startTime": 1e9}}, r"execution\.startTime must be a whole number"),
        ({"globalCacheInputs": 1}, "globalCacheInputs must be an object"),
    ],
)
def test_a_document_that_is_no_summary(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSummary, match=message):
        parse_summary(document() | changes)


def test_every_kind_has_an_advice() -> None:
    cause = only(compared(LIB, inputs=CHANGED))
    assert {replace(cause, kind=kind).advice for kind in Kind} <= ADVICE.keys()
    hinted = {replace(cause, hints=((hint, ()),)).advice for hint in Hint}
    assert hinted <= ADVICE.keys()
