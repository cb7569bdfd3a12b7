"""`python -m tests.rehearsal`: run each function under its own role, then without each permission in turn.

1. The tests of the functions run in an emulator that checks permissions. A missing permission fails a test, which names
   it.
2. Permissions that no test uses are listed. `unused.toml` gives the reason for each one that stays.
3. Every other permission is removed from the role of its function, and a test that uses it runs again. It has to fail.

The exit status is 1 if a test fails in the first step, if none fails in the third, or if an unused permission has no
reason.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.permissions import RESOURCES
from tests.rehearsal.acting import ROLES
from tests.rehearsal.plugin import REMOVALS
from tests.rehearsal.roles import Permission, permissions
from tests.sam import transformed_resources

ROOT = Path(__file__).resolve().parents[2]
UNUSED = Path(__file__).with_name("unused.toml")

Uses = dict[Permission, list[str]]
"""The tests that use a permission, fastest first."""

_ALL_TESTS = ("tests/rehearsal", "tests/functions", "tests/sso", "tests/trust")
_FEW_TESTS = ("tests/rehearsal", "tests/functions/test_sample_events.py")
_RESOURCES = "resources.json"
_WORTH_WORKERS = 50
_TRIES = 12
"""How many tests are tried for one permission. One is not enough, because a test may use it only sometimes."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.rehearsal")
    parser.add_argument("--short", action="store_true", help="the sample events, and one function of each domain")
    parser.add_argument("--workers", default="2", help="tests that run at a time (default: 2)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="larder-rehearsal-") as name:
        return rehearse(Path(name), short=options.short, workers=options.workers)


def rehearse(folder: Path, *, short: bool, workers: str) -> int:
    begun = time.monotonic()
    (folder / _RESOURCES).write_text(json.dumps(transformed_resources()))
    if _pytest(folder, _FEW_TESTS if short else _ALL_TESTS, workers).returncode:
        return 1
    uses = dict(_uses(_findings(folder)))
    used = f"{len(uses)} of {len(permissions())} permissions used after {_since(begun)}."
    print(f"\n{used}\n", flush=True)
    problems = [] if short else [*_unexplained(uses.keys())]
    removed = _one_function_a_domain(uses) if short else uses
    failing = _take_away(removed, folder, workers)
    _print_table(removed, failing)
    problems += [
        f"{_words(permission)} can go: no test fails without it"
        for permission in sorted(removed.keys() - failing.keys())
    ]
    print(f"\n{len(failing)} permissions taken away in turn, after {_since(begun)}.")
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if problems else 0


def _pytest(
    folder: Path, arguments: Iterable[str], workers: str, *, quiet: bool = False
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "tests.rehearsal.plugin"),
            *("-m", "not thorough", "-n", workers, *arguments),
        ],
        cwd=ROOT,
        env={**os.environ, "ENGINE": ROLES, "REHEARSAL": str(folder), "SAM_RESOURCES": str(folder / _RESOURCES)},
        stdout=subprocess.PIPE if quiet else None,
        stderr=subprocess.STDOUT if quiet else None,
    )


def _findings(folder: Path) -> Iterator[dict[str, Any]]:
    """What the processes of a run recorded. The records are deleted for the next run."""
    for file in folder.glob("*.jsonl"):
        for line in file.read_text().splitlines():
            yield json.loads(line)
        file.unlink()


def _uses(findings: Iterable[dict[str, Any]]) -> Iterator[tuple[Permission, list[str]]]:
    seconds: dict[Permission, dict[str, float]] = {}
    for found in findings:
        seconds.setdefault(Permission(**found["permission"]), {}).update(found["tests"])
    for permission, tests in seconds.items():
        yield permission, sorted(tests, key=lambda test: tests[test])


# ------------------------------------------------------------------------------------ unused permissions


def _unexplained(used: Iterable[Permission]) -> Iterator[str]:
    explained = {
        Permission(function, entry["action"], entry["resource"]): entry["reason"]
        for entry in tomllib.loads(UNUSED.read_text()).get("unused", [])
        for function in entry["functions"]
    }
    unused = permissions() - set(used)
    for permission in sorted(unused):
        print(f"not used: {_words(permission)}: {explained.get(permission, 'no reason given')}")
        if permission not in explained:
            yield f"{_words(permission)} is used by no test, and {UNUSED.name} does not say why"
    for permission in sorted(explained.keys() - unused):
        yield f"{UNUSED.name} explains {_words(permission)}, which is used or not there"


# ------------------------------------------------------------------------------------ removing permissions


def _one_function_a_domain(uses: Uses) -> Uses:
    """In each folder of functions/, the permissions of the function that uses the most."""
    most: dict[str, list[Permission]] = {}
    for function in sorted({permission.function for permission in uses}):
        domain = RESOURCES[function]["Properties"]["Handler"].partition(".")[0]
        own = [permission for permission in uses if permission.function == function]
        if len(own) > len(most.get(domain, [])):
            most[domain] = own
    return {permission: uses[permission] for own in most.values() for permission in own}


def _take_away(uses: Uses, folder: Path, workers: str) -> dict[Permission, str]:
    """For each permission that a test failed without, that test."""
    failing: dict[Permission, str] = {}
    for attempt in range(_TRIES):
        removals: dict[str, list[dict[str, str]]] = {}
        for permission, tests in uses.items():
            if permission not in failing and attempt < len(tests):
                removals.setdefault(tests[attempt], []).append(asdict(permission))
        if not removals:
            break
        (folder / REMOVALS).write_text(json.dumps(removals))
        chosen = folder / "tests"
        chosen.write_text("\n".join(removals))
        # Workers take as long to start as a few dozen of these runs.
        few = sum(map(len, removals.values())) < _WORTH_WORKERS
        done = _pytest(folder, [f"@{chosen}"], "0" if few else workers, quiet=True)
        found = list(_findings(folder))
        if len(found) != sum(map(len, removals.values())):
            raise SystemExit(f"the run stopped:\n{done.stdout.decode()[-4_000:]}")
        for one in found:
            if one["failed"]:
                failing[Permission(**one["permission"])] = one["test"]
    return failing


def _print_table(removed: Iterable[Permission], failing: Mapping[Permission, str]) -> None:
    rows = [("function", "action", "resource", "fails without it")] + [
        (one.function, one.action, one.target, failing.get(one, "NONE")) for one in sorted(removed)
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        print("  ".join([*cells, row[3].removeprefix("tests/")]))


def _words(permission: Permission) -> str:
    return f"{permission.function}: {permission.action} on {permission.target}"


def _since(begun: float) -> str:
    return f"{time.monotonic() - begun:.0f} s"


if __name__ == "__main__":
    raise SystemExit(main())
