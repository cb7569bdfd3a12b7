"""`make sidecar-proof`: run `larder run` and `larder proxy` with real tools in every arrangement, and print a table."""

from __future__ import annotations

import sys
from collections import defaultdict

import pytest

_P, _E = "tests/proxy/test_", "tests/e2e/test_"
_RUN, _TURBO, _TOOLS = f"{_P}run.py::test_", f"{_E}turbo_sidecar", f"{_E}build_tools"
_UNUSUAL = f"{_E}sidecar_arrangements.py::test_"

ROWS = {
    "Exit statuses, signals, a missing program": [f"{_RUN}the_status_is_that"],
    "Arguments with dashes": [f"{_RUN}options_of_the_build"],
    "Inherited descriptors; closed stdout or stderr": [f"{_RUN}open_files_and_closed"],
    "Ctrl-C and a closed terminal with turbo": [
        f"{_TURBO}_at_scale.py::test_ctrl_c",
        f"{_RUN}a_closed_terminal",
        f"{_RUN}an_ignored_signal",
    ],
    "Ctrl-C and SIGTERM while uploads are awaited": [f"{_RUN}a_signal_ends"],
    "turbo watch, an edit, Ctrl-C, the next job": [f"{_UNUSUAL}turbo_watches"],
    "turbo: every size, signed, old versions": [
        f"{_TURBO}.py::test_artifacts_of_every_size",
        f"{_TURBO}.py::test_builds_with_and_without",
    ],
    "Two builds in one folder at once": [f"{_TURBO}_at_scale.py::test_two_builds_at_once"],
    "Two jobs of one commit at once": [f"{_P}prefetch.py::test_what_another_job_stores"],
    "Store and look up again in one run": [
        f"{_P}sidecar.py::test_an_entry_is_found_while",
        f"{_P}sidecar.py::test_a_miss_that_was",
    ],
    "Any order of stores, deletions and lookups": [f"{_P}states.py"],
    "Nx": [f"{_TOOLS}.py::test_nx", f"{_TOOLS}.py::test_older_versions_of_nx"],
    "sccache and ccache; Rust": [f"{_TOOLS}.py::test_compilers", f"{_TOOLS}.py::test_sccache"],
    "Gradle, moon, Bazel": [f"{_E}more_build_tools.py::test_a_second_build"],
    "Rush, and a process of the user": [f"{_E}more_build_tools.py::test_rush"],
    "Nested larder run": [f"{_RUN}a_build_within_a_build"],
    "The proxy of a company, every tool": [
        f"{_E}tools_behind_a_proxy.py",
        f"{_E}behind_a_proxy.py",
        f"{_RUN}no_proxy_of_a_company",
    ],
    "Variables of another sidecar": [f"{_RUN}variables_of_another", f"{_RUN}variables_that_are_set"],
    "No address, a wrong one, bytes that are no text": [f"{_RUN}without_a_cache"],
    "An unusual clock, only IPv6, an unknown user": [f"{_UNUSUAL}compilers_build"],
    "A full disk": [
        f"{_TURBO}_at_scale.py::test_a_full_disk",
        f"{_P}sidecar.py::test_a_full_disk",
        f"{_P}sidecar.py::test_a_body_for_which",
        f"{_P}sidecar.py::test_busy_answers",
    ],
    "Few descriptors": [f"{_RUN}a_process_with_few_open_files"],
    "A key that only reads, a wrong key, a revoked one": [
        f"{_TURBO}.py::test_a_build_succeeds_with_a_key",
        f"{_P}sidecar.py::test_a_wrong_key",
        f"{_P}sidecar.py::test_a_key_that_only_reads",
    ],
    "A key with ten uses left": [f"{_UNUSUAL}a_key_whose_uses"],
    "A team without caching, a quota, a pull request": [f"{_TOOLS}_in_teams.py"],
    "An exchanged token that expires": [f"{_P}credentials.py"],
    "Larder is slow, hangs, fails or restarts": [
        f"{_P}hanging.py",
        f"{_E}build_tool_faults.py",
        f"{_TOOLS}_at_scale.py::test_a_restart",
        f"{_E}killed_processes.py",
    ],
    "300 packages with ten functions; large outputs in parallel": [
        f"{_TURBO}_at_scale.py::test_ten_functions",
        f"{_TOOLS}_at_scale.py::test_large_outputs",
        f"{_TOOLS}_at_scale.py::test_builds_at_once",
    ],
    "20,000 entries": [f"{_P}sidecar.py::test_what_is_known_of_many"],
    "Strangers without the token": [f"{_RUN}strangers"],
    "A port that is taken between choice and bind": [f"{_RUN}the_port_of_sccache"],
    "larder proxy: several starts, kills, teams and keys": [
        f"{_RUN}a_process_of_the_user", f"{_RUN}two_starts", f"{_RUN}who_listens", f"{_RUN}a_process_leaves",
        f"{_RUN}a_port_in_use", f"{_RUN}a_refused_key",
    ],
    "The console's runs, also from a sub-folder": [
        f"{_P}reports.py",
        f"{_TURBO}.py::test_usage_and_runs",
        f"{_E}more_build_tools.py::test_moon",
    ],
    "The oldest Python": [f"{_RUN}it_runs_on_the_oldest", f"{_TOOLS}_in_teams.py::test_the_oldest"],
}  # fmt: skip
"""Each arrangement with the beginnings of its tests."""


class _Outcomes:
    """The outcomes of each test by its id. pytest's processes do not see this plugin, so it also lists them before."""

    def __init__(self) -> None:
        self.chosen: list[str] = []
        self.of: dict[str, set[str]] = defaultdict(set)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        wanted = tuple(test for tests in ROWS.values() for test in tests)
        self.chosen = [item.nodeid for item in items if item.nodeid.startswith(wanted)]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or not report.passed:
            self.of[report.nodeid].add(report.outcome)

    def row(self, tests: list[str]) -> str:
        found = [self.of[one] for one in self.of if one.startswith(tuple(tests))]
        counts = {
            "passed": sum(one == {"passed"} for one in found),
            "failed": sum("failed" in one for one in found),
            "skipped": sum(one == {"skipped"} for one in found),
        }
        return ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "no test"


def main() -> int:
    outcomes = _Outcomes()
    files = sorted({test.partition("::")[0] for tests in ROWS.values() for test in tests})
    pytest.main(["-qq", "--collect-only", *files], plugins=[outcomes])
    status = pytest.main(["-q", *outcomes.chosen, *sys.argv[1:]], plugins=[outcomes])
    lines = [f"| {name} | {outcomes.row(tests)} |" for name, tests in ROWS.items()]
    print("\n".join(["| Arrangement | Tests |", "| :-- | :-- |", *lines]))
    return int(status or any(line.endswith("| no test |") for line in lines))


if __name__ == "__main__":
    sys.exit(main())
