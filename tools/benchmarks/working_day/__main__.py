"""`python -m tools.benchmarks.working_day`: measure what protection costs in hits (docs/benchmarks-working-day.md)."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import repeat
from pathlib import Path

from tests.e2e import cloud, turbo
from tests.issuer import serving
from tools.benchmarks.working_day.model import Policy
from tools.benchmarks.working_day.plan import Day
from tools.benchmarks.working_day.play import Played, Team
from tools.benchmarks.working_day.report import differing, page

ROOT = Path(__file__).parents[3]
_UNLIMITED = {"LARDER_HTTP_RATE_LIMIT_ENABLED": "false"}
"""All engineers come from one address."""

DAY = Day(engineers=20, changes=30, pushes=4, builds=2, packages=100, seed=19)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.benchmarks.working_day", description=__doc__
    )
    parser.add_argument("--seed", type=int, default=DAY.seed, help="plan another day")
    parser.add_argument("--minutes", type=float, default=60, help="stop the day after this time")
    parser.add_argument(
        "--policies",
        default=",".join(policy.value for policy in Policy),
        help="compare only some policies, separated by commas",
    )
    parser.add_argument("--write", type=Path, help="write the page to this file")
    asked = parser.parse_args()
    policies = [Policy(name) for name in asked.policies.split(",")]
    day = replace(DAY, seed=asked.seed)
    began = time.monotonic()

    def go_on(done: int, steps: int) -> bool:
        minutes = (time.monotonic() - began) / 60
        sys.stderr.write(f"\r{minutes:5.1f} min  {done} of {steps} steps")
        return bool(minutes < asked.minutes)

    played = measure(day, policies, go_on)
    text = page(day, played, turbo.NEWEST)
    sys.stdout.write(f"\n{text}")
    if asked.write:
        asked.write.write_text(text)
    return 1 if differing(day, played) else 0


def measure(
    day: Day, policies: Sequence[Policy], go_on: Callable[[int, int], bool] = lambda *_: True
) -> Played:
    """Play the day with each policy, each in a team of its own: every step in all teams at the same time.

    `go_on` gets the number of steps that are done, and of all. The day ends early if it returns False.
    """
    with (
        tempfile.TemporaryDirectory(prefix="larder-day-") as name,
        cloud.running(ROOT, Path(name) / "data", **_UNLIMITED) as local_cloud,
        serving() as server,
        ThreadPoolExecutor(max_workers=len(policies)) as pool,
    ):
        issuer = server.issuer()
        local_cloud.larder("issuers", "add", server.url)
        command = turbo.installed(turbo.NEWEST, ROOT / ".tools" / "turbo")

        def team_of(policy: Policy) -> Team:
            folder = Path(name) / policy.value
            return Team(
                policy, day, cloud=local_cloud, issuer=issuer, command=command, folder=folder
            )

        teams = list(pool.map(team_of, policies))
        time.sleep(cloud.COUNTS_AFTER_S)
        list(pool.map(Team.begin, teams))
        steps = day.steps()
        done = 0
        while done < len(steps) and go_on(done, len(steps)):
            list(pool.map(Team.play, teams, repeat(steps[done])))
            done += 1
    return Played({team.policy: team.figures for team in teams}, steps[:done])


if __name__ == "__main__":
    raise SystemExit(main())
