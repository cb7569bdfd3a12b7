"""`larder why`: files, git, the output and the errors. tests/e2e/test_why.py runs the real turbo."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larder.why.causes import ADVICE
from larder.why.comparison import compare
from larder.why.records import record
from larder.why.summaries import MAX_TASKS, InvalidSummary, parse_summary
from larder_cli.why import summaries
from larder_cli.why.fix import FixesJson, FixJson
from larder_cli.why.redaction import redacted
from larder_cli.why.report import code_span, markdown, text
from tests.larder.why.summaries import document, task_record, variables

from .conftest import Larder
from .git_repository import LIB, UI, Repository, fresh

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "why.md"
SECRET = hashlib.sha256(b"production").hexdigest()


@pytest.fixture
def repository(tmp_path: Path, own_environment: pytest.MonkeyPatch) -> Repository:
    return fresh(tmp_path, own_environment)


def causes(*arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = Larder().json("why", *arguments)["causes"]
    return found


def about(cause: dict[str, Any]) -> tuple[str, list[str], str | None]:
    """The path of a file's cause, its hints and its class."""
    return cause["subject"], [hint["hint"] for hint in cause["hints"]], cause["class"]


def test_two_files(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    base = repository.write("base.json", document(LIB, UI))
    lib = LIB | {"hash": "l2", "environmentVariables": variables((f"NODE_ENV={SECRET}",))}
    run = repository.write("run.json", document(lib, UI | {"hash": "u2"}))
    shown = Larder()("why", base, run).stdout
    assert shown.splitlines() == [
        "Compared 2 tasks with run 36BZkPZ2 of main at aaaaaaaa: 0 with the same hash, 2 with another.",
        "",
        "1. variable: NODE_ENV added -> 2 tasks, 2.0 s [setup]",
        "     lib#build; then 1 that depend on them",
        f"     {ADVICE['variable']} (docs/why.md#variable)",
    ]
    monkeypatch.setenv("TURBO_API", "https://cache.example.com/")
    there = Larder()("why", base, run).stdout
    assert there == shown.replace("docs/why.md#", "https://cache.example.com/docs/why#")
    for options in ((), ("--json",), ("--markdown",), ("--redact",)):
        assert SECRET[:12] not in Larder()("why", base, run, *options).stdout


def test_nothing_changed(repository: Repository) -> None:
    base = repository.write("base.json", document(LIB))
    shown = Larder()("why", base, base).stdout
    assert "nothing changed: every hash is that of the baseline" in shown
    assert "same hash, not restored: 1 task with the hash of the baseline: lib#build" in shown


def test_the_last_two_runs(repository: Repository) -> None:
    assert "has 0 of the 2 run summaries that --last compares" in Larder().refusal("why", "--last")
    for number, name in enumerate(("c", "a", "b")):
        path = repository.run(name, f"l{number}", a=name.encode())
        os.utime(path, (number, number))
    report = Larder().json("why", "--last")
    assert (report["tasks"], report["changed"]) == (1, 1)
    repository.write("packages/lib/turbo.json", {"extends": ["//"]})
    os.chdir(repository.root / "packages" / "lib" / "src")
    assert Larder().json("why", "--last") == report


def test_files_that_git_knows_and_does_not_know(repository: Repository) -> None:
    old = repository.git("rev-parse", "HEAD")
    repository.write("packages/lib/src/new.js", "two\n")
    new = repository.commit()
    repository.write("packages/lib/src/a.js", "edited\n")
    repository.write("packages/lib/src/untracked.js", "three\n")
    repository.write("packages/lib/src/added.js", "four\n")
    repository.git("add", "packages/lib/src/added.js")
    base = repository.run("base", "l1", old, a=b"one\n")
    inputs = {"a": b"edited\n", "new": b"two\n", "untracked": b"three\n", "added": b"four\n"}
    run = repository.run("run", "l2", new, **inputs)
    found = causes(base, run)
    assert sorted(map(about, found)) == [
        ("packages/lib/src/a.js", ["uncommitted"], "setup"),
        ("packages/lib/src/added.js", ["uncommitted"], "setup"),
        ("packages/lib/src/new.js", [], "code"),
        ("packages/lib/src/untracked.js", ["untracked"], "setup"),
    ]
    commits = {one["subject"]: one["commit"] for one in found}
    assert new.startswith(commits.pop("packages/lib/src/new.js"))
    assert set(commits.values()) == {None}
    Larder()("why", base, run, "--fail-on", "setup", status=3)


def test_only_code_does_not_fail(repository: Repository) -> None:
    base = repository.run("base", "l1", a=b"one\n")
    repository.write("packages/lib/src/a.js", "two\n")
    repository.commit()
    run = repository.run("run", "l2", a=b"two\n")
    assert [about(cause)[2] for cause in causes(base, run)] == ["code"]
    Larder()("why", base, run, "--fail-on", "setup")


@pytest.mark.parametrize("is_committed", [True, False])
def test_line_endings_are_proven_by_the_hash(repository: Repository, is_committed: bool) -> None:
    base = repository.run("base", "l1", a=b"one\n")
    repository.write("packages/lib/src/a.js", "one\r\n")
    if is_committed:
        repository.commit()
    run = repository.run("run", "l2", a=b"one\r\n")
    (cause,) = causes(base, run)
    assert about(cause)[1:] == (["line_endings"], "code" if is_committed else "setup")
    other = repository.run("other", "l3", a=b"two\r\n")
    assert "line_endings" not in about(causes(base, other)[0])[1]


def test_a_repository_that_does_not_have_the_commits(repository: Repository) -> None:
    """As in a shallow clone: nothing is said about files."""
    base = repository.run("base", "l1", "b" * 40, a=b"one\n")
    unknown = repository.run("run", "l2", "c" * 40, a=b"two\n", new=b"")
    assert [about(cause)[1:] for cause in causes(base, unknown)] == [([], None)] * 2
    shallow = repository.run("run", "l2", a=b"two\n", new=b"")
    assert [about(cause)[1:] for cause in causes(base, shallow)] == [(["uncommitted"], None), (["untracked"], "setup")]
    strange = repository.run("run", "l2", "--output=x", a=b"two\n")
    assert [about(cause)[1:] for cause in causes(base, strange)] == [([], None)]
    assert not (repository.root / "x").exists()


def test_a_folder_of_a_repository(repository: Repository, own_environment: pytest.MonkeyPatch) -> None:
    """The root of turbo can be below that of git."""
    inner = Repository(repository.root / "apps")
    inner.write("turbo.json", {"tasks": {}})
    inner.write("packages/lib/src/a.js", "one\n")
    inner.commit()
    base = inner.run("base", "l1", a=b"one\n")
    inner.write("packages/lib/src/a.js", "two\n")
    new = inner.commit()
    run = inner.run("run", "l2", a=b"two\n")
    own_environment.chdir(inner.root)
    (cause,) = causes(base, run)
    assert about(cause) == ("packages/lib/src/a.js", [], "code")
    assert new.startswith(cause["commit"])


def test_changed_packages_of_the_lockfile(repository: Repository) -> None:
    def commit(version: str) -> str:
        package = {"version": version}
        packages = {"packages/lib": {"dependencies": {"ms": "2"}}, "node_modules/ms": package}
        repository.write("package-lock.json", {"packages": packages})
        return repository.commit()

    def run(name: str, sha: str) -> str:
        task = LIB | {"hash": name, "hashOfExternalDependencies": name}
        return repository.write(f"{name}.json", document(task, scm={"sha": sha, "branch": "main"}))

    base, other = run("one", commit("2.0.0")), run("two", commit("2.1.0"))
    (cause,) = causes(base, other)
    assert cause["hints"] == [{"hint": "packages", "values": ["ms 2.0.0 -> 2.1.0"]}]
    assert cause["class"] == "code"


def test_markdown_is_no_markup_of_its_names(repository: Repository) -> None:
    name = "<img src=x>`@org`|\n\u202e.js"
    base = repository.write("base.json", document(LIB))
    inputs = LIB["inputs"] | {name: "3" * 40}
    run = repository.write("run.json", document(LIB | {"hash": "l2", "inputs": inputs}))
    shown = Larder()("why", base, run, "--markdown").stdout
    assert shown.startswith("**Larder**: Compared 1 task with run `36BZkPZ2` of `main`")
    row = next(line for line in shown.splitlines() if line.startswith("| file"))
    assert row == ("| file: `packages/lib/<img src=x>'@org'\\|\ufffd\ufffd.js` added | 1 | 1.0 s |  |")
    assert "@org" not in re.sub(r"`[^`]*`", "", shown)
    assert "\u202e" not in Larder()("why", base, run).stdout


def test_redaction_leaves_no_name(repository: Repository) -> None:
    names = ("hidden-package", "HIDDEN_VARIABLE", "HIDDEN_OTHER", "hidden-path", "hidden-argument", "hidden-branch")
    old = task_record("hidden-package#build", "1", "hidden-package#lint")
    new = task_record(
        "hidden-package#build",
        "2",
        "hidden-package#test",
        inputs=old["inputs"] | {"hidden-path/x.js": "1"},
        environmentVariables=variables(("HIDDEN_OTHER=1",), env=["HIDDEN_VARIABLE"]),
        cliArguments=["hidden-argument"],
        hashOfExternalDependencies="other",
        directory="packages/hidden-path",
        resolvedTaskDefinition={"env": ["HIDDEN_VARIABLE"], "outputs": ["hidden-path/**"]},
    )
    scm = {"sha": "b" * 40, "branch": "hidden-branch"}
    base = repository.write("base.json", document(old, scm=scm))
    new_one = task_record("hidden-package#test", "1", environmentVariables=variables(passed=("HIDDEN_VARIABLE=1",)))
    run = repository.write("run.json", document(new, new_one, scm=scm))
    for options in ((), ("--json",), ("--markdown",)):
        plain = Larder()("why", base, run, *options).stdout
        assert [name for name in names if name not in plain] == []
        shown = Larder()("why", base, run, "--redact", *options).stdout
        assert [name for name in names if name in shown] == []
        assert shown == Larder()("why", base, run, "--redact", *options).stdout
    assert "variable: variable-1 added" in Larder()("why", base, run, "--redact").stdout


def test_files_that_cannot_be_used(repository: Repository) -> None:
    good = repository.write("good.json", document(LIB))
    cases: dict[str, tuple[bytes | dict[str, Any], str]] = {
        "damaged": (b'{"version": "1", "tas', "damaged.json is not valid JSON"),
        "deep": (b"[" * 100_000, "deep.json is not valid JSON"),
        "binary": (b"\xff\x00\x01", "binary.json is not valid JSON"),
        "other": ({"name": "web"}, "other.json: it is no run summary of turbo"),
        "list": (b"[]", "list.json: the summary must be an object"),
        "newer": (document(LIB, version="2"), "newer.json: its format is version '2'"),
        "strange": (document(LIB | {"inputs": [1]}), "strange.json: tasks.0.inputs must be"),
        "disjoint": (document(UI), "the two runs have no task in common"),
        "many": (
            document() | {"tasks": [0] * (MAX_TASKS + 1)},
            "many.json: it has 20001 tasks, and Larder reads 20000 at most",
        ),
    }
    for name, (content, message) in cases.items():
        assert message in Larder().refusal("why", good, repository.write(f"{name}.json", content))
    assert "cannot read missing.json" in Larder().refusal("why", "missing.json", good)
    with (repository.root / "large.json").open("wb") as file:
        file.truncate(summaries.MAX_BYTES + 1)
    assert "large.json has more than 100 MB" in Larder().refusal("why", good, "large.json")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name tasks, two files of .turbo/runs, or a hash, or use --last or --run ID alone"),
        (("a.json",), "name tasks"),
        (("a.json", "b.json", "c.json"), "name tasks"),
        (("a.json", "build"), "name tasks"),
        (("--last", "build"), "name tasks"),
        (("--against", "a.json"), "name tasks"),
        (("--against", "main"), "name tasks"),
        (("--run", "36BZkPZ2", "build"), "name tasks"),
        (("--run", "36BZkPZ2", "--last"), "name tasks"),
        (("build", "--offline"), "--offline asks no deployment"),
        (("build", "--against", "a.json", "--", "--force"), "--force is not a task"),
        (("build", "--", "--force"), "--force is not a task"),
        (("a.json", "b.json", "--json", "--markdown"), "choose --json or --markdown"),
    ],
)
def test_wrong_usage(repository: Repository, arguments: tuple[str, ...], message: str) -> None:
    assert message in Larder().refusal("why", *arguments, status=2)


def test_outside_a_repository(repository: Repository, tmp_path: Path) -> None:
    """Two files can be compared anywhere."""
    base = repository.run("base", "l1", a=b"one\n")
    run = repository.run("run", "l2", a=b"two\n")
    os.chdir(tmp_path)
    assert [about(cause) for cause in causes(base, run)] == [("packages/lib/src/a.js", [], None)]
    assert "there is no turbo.json" in Larder().refusal("why", "--last", status=2)


def test_a_dry_run_that_fails(repository: Repository, own_environment: pytest.MonkeyPatch) -> None:
    base = repository.write("base.json", document(LIB))
    own_environment.setenv("PATH", os.defpath)
    missing = Larder().refusal("why", "build", "--against", base)
    assert "node_modules nor on PATH" in missing
    turbo = repository.root / "node_modules" / ".bin" / "turbo"

    def prints(script: str) -> None:
        repository.write("node_modules/.bin/turbo", f"#!/bin/sh\n{script}\n")
        turbo.chmod(0o755)

    prints("printf ' \\033[31mERROR\\033[0m  no task \\007named build\\n' >&2; exit 1")
    failed = Larder().refusal("why", "build", "--against", base)
    assert failed == "turbo run build --dry=json failed: ERROR  no task \N{REPLACEMENT CHARACTER}named build"
    prints("echo no JSON")
    assert "the output of turbo --dry=json is not valid" in Larder().refusal("why", "build", "--against", base)
    prints("cat base.json")
    assert "nothing changed" in Larder()("why", "build", "--against", base, "--offline").stdout


def test_boto3_is_not_imported(repository: Repository) -> None:
    base = repository.run("base", "l1", a=b"one\n")
    run = repository.run("run", "l2", a=b"two\n")
    program = (
        "import sys\n"
        "from larder_cli.main import cli\n"
        f"cli(['why', {base!r}, {run!r}], standalone_mode=False)\n"
        "print([name for name in ('boto3', 'botocore', 'rich') if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert shown.stdout.splitlines()[-1] == "[]"


def test_the_guide_has_a_heading_for_each_advice() -> None:
    _, _, section = GUIDE.read_text().partition("\n## Causes\n")
    headings = re.findall(r"^### (.+)$", section.partition("\n## ")[0], re.MULTILINE)
    assert sorted(heading.lower().replace(" ", "-") for heading in headings) == sorted(ADVICE)


def test_the_json_of_the_guide_is_that_of_the_command() -> None:
    fix, example = re.findall(r"^```json\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    shown = record(compare(parse_summary(document(LIB)), parse_summary(document(LIB | {"hash": "2"}))))
    written, printed = json.loads(example), json.loads(json.dumps(shown))
    assert list(written) == list(printed)
    for name in ("baseline", "run"):
        assert list(written[name]) == list(printed[name])
    assert list(written["causes"][0]) == list(printed["causes"][0])
    shape = json.loads(fix)
    assert (list(shape), list(shape["fixes"][0])) == (list(FixesJson.__annotations__), list(FixJson.__annotations__))


ANY_TEXT = st.text(max_size=8) | st.sampled_from(["\x1b[2J", "\x7f", "\u202e", "`", "|", "\ud800"])
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=6,
)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container of a document with each of its keys."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from places(value[key])


@given(data=st.data())
def test_any_summary_gives_causes_or_one_error(data: st.DataObject) -> None:
    """Parts of a summary are replaced, and names added. No control character is left in the output."""
    task = LIB | {"environmentVariables": variables(("A=1",), ("B=1",), ("C=1",), env=["A"])}
    base = parse_summary(document(task, UI))
    changed = json.loads(json.dumps(document(task | {"hash": "l2"}, UI | {"hash": "u2"})))
    for _ in range(data.draw(st.integers(1, 4))):
        container, key = data.draw(st.sampled_from(list(places(changed))))
        container[key] = data.draw(ANY_JSON)
    inputs = changed.get("tasks")
    if isinstance(inputs, list) and inputs and isinstance(inputs[0], dict):
        inputs[0]["inputs"] = {data.draw(ANY_TEXT): data.draw(ANY_TEXT)}
    try:
        comparison = compare(base, parse_summary(changed))
    except InvalidSummary:
        return
    compared = record(comparison)
    for shown in (compared, redacted(compared)):
        lines = [*text(shown), *markdown(shown)]
        assert [line for line in lines if not line.isprintable()] == []
        assert json.loads(json.dumps(shown))
    assert bool(comparison.changed) == bool(comparison.causes)


def test_names_in_the_output_have_no_control_characters(repository: Repository) -> None:
    base = repository.write("base.json", document(LIB))
    inputs = LIB["inputs"] | {"\x1b[2J\x7f\x9b.js": "3" * 40}
    run = repository.write("run.json", document(LIB | {"hash": "l2", "inputs": inputs}))
    for options in ((), ("--json",), ("--markdown",)):
        shown = Larder()("why", base, run, *options).stdout
        assert [line for line in shown.splitlines() if not line.isprintable()] == []


def test_code_spans() -> None:
    assert code_span("a`b|c") == "`a'b\\|c`"
    assert code_span(" ") == "` `"
