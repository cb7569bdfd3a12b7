"""`pytest --unused-permissions`: fail if the template grants a function what no test of this run needs.

tests/permissions.py records what each test needs. unused_permissions.toml has the reasons for what stays all the same.
"""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.permissions import RESOURCES, USED, Use, grants

REASONS = Path(__file__).with_suffix(".toml")


def problems(used: set[Use]) -> list[str]:
    """A line for each permission that is not used and has no reason, and for each needless reason."""
    functions = [name for name, resource in RESOURCES.items() if "Handler" in resource.get("Properties", {})]
    unused = {(name, grant) for name in functions for grant in grants(name)} - used
    explained = {
        (function, (entry["action"], entry["resource"]))
        for entry in tomllib.loads(REASONS.read_text())["unused"]
        for function in entry["functions"]
    }
    return [
        *(f"{name}: no test needs {action} on {on}" for name, (action, on) in sorted(unused - explained)),
        *(
            f"{name}: {REASONS.name} has {action} on {on} needlessly"
            for name, (action, on) in sorted(explained - unused)
        ),
    ]


class UnusedPermissions:
    """Collects the permissions that the tests of all processes need."""

    def pytest_testnodedown(self, node: Any) -> None:
        USED.update((name, tuple(grant)) for name, grant in node.workeroutput.get("permissions", []))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["permissions"] = sorted(USED)
        elif session.exitstatus == pytest.ExitCode.OK and problems(USED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, exitstatus: int) -> None:
        # After a failed test, its permissions are missing.
        if not terminalreporter.stats.get("failed"):
            for problem in problems(USED):
                terminalreporter.write_line(f"template.yaml: {problem}", red=True)
