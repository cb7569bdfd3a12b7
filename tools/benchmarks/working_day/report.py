"""The page about the working day."""

from __future__ import annotations

from collections.abc import Mapping

from tools.benchmarks.working_day.model import Figures, Place, Policy, predicted
from tools.benchmarks.working_day.plan import Day
from tools.benchmarks.working_day.play import Played

_NAMES = {
    Policy.OPEN: "not protected: laptops and CI write one scope",
    Policy.CI_ONLY: "not protected, and laptops only read",
    Policy.PROTECTED: "protected",
}
_CI = (Place.PULL_REQUESTS, Place.MAIN)

_PAGE = """# Benchmark: hits of a working day

What [protection](protection.md) costs in hits. `make working-day` plays the day with turbo {version} against the local
cloud and writes this page. The same seed gives the same figures.

{engineers} engineers work on {changes} changes in a monorepo of {packages} packages. Each change is a branch with
{pushes} pushes, and {builds} builds on the laptop before each. Halfway, the engineer merges `main` into the branch.
Each push starts a job that builds the merge of the branch with `main`, and each merge a job of `main`. Jobs begin with
an empty folder, and get their tokens by [exchange](trust.md). Each laptop keeps turbo's own cache, and has a key. CI
built `main` the evening before. A hit is a task that turbo restored, from the remote cache or the laptop's own.

## Result

| Hits in percent | all | jobs of pull requests | jobs of main | laptops | tasks built in CI |
|---|---|---|---|---|---|
{whole}

Protection costs **{lost:.1f} points** of all hits. In CI, it is {lost_ci:.1f} points against a team whose laptops
fill the cache of CI, and {lost_careful:.1f} points against one whose laptops only read. CI builds
what a laptop has built, and `main` what a pull request has built. A merge queue whose jobs are
[trusted](trust.md#connect-github) saves the second.

## What turbo did

{measured}
"""

_ALL = "The figures are those of turbo. A model that knows only who reads and writes which scope predicted each."
_PART = """The figures above are those of a model that knows only who reads and writes which scope. turbo
played the first {done} of {steps} steps of the day, in which it got these hits:

| Hits in percent | all | jobs of pull requests | jobs of main | laptops | tasks built in CI |
|---|---|---|---|---|---|
{rows}

Of these {tasks:,} tasks, {differing} had another outcome than the model predicted."""


def page(day: Day, played: Played, version: str) -> str:
    whole = {policy: predicted(day, policy, day.steps()) for policy in Policy}
    protected, unprotected = whole[Policy.PROTECTED], whole[Policy.OPEN]
    return _PAGE.format(
        version=version,
        engineers=day.engineers,
        changes=day.changes,
        packages=day.packages,
        pushes=day.pushes,
        builds=day.builds,
        whole=_rows(whole),
        lost=unprotected.hit_rate() - protected.hit_rate(),
        lost_ci=unprotected.hit_rate(*_CI) - protected.hit_rate(*_CI),
        lost_careful=whole[Policy.CI_ONLY].hit_rate(*_CI) - protected.hit_rate(*_CI),
        measured=_measured(day, played, whole),
    )


def differing(day: Day, played: Played) -> int:
    """How many tasks, at least, had another outcome than the model predicts."""
    return sum(
        max(figures.unexpected, abs(figures.built() - predicted(day, policy, played.steps).built()))
        for policy, figures in played.figures.items()
    )


def _measured(day: Day, played: Played, whole: Mapping[Policy, Figures]) -> str:
    if played.figures == whole:
        return _ALL
    return _PART.format(
        done=len(played.steps),
        steps=len(day.steps()),
        rows=_rows(played.figures),
        tasks=sum(sum(figures.tasks.values()) for figures in played.figures.values()),
        differing=differing(day, played) or "none",
    )


def _rows(found: Mapping[Policy, Figures]) -> str:
    return "\n".join(_row(policy, figures) for policy, figures in found.items())


def _row(policy: Policy, figures: Figures) -> str:
    rates = [figures.hit_rate(*places) for places in ((), _CI[:1], _CI[1:], (Place.LAPTOPS,))]
    cells = [_NAMES[policy], *(f"{rate:.1f}" for rate in rates), str(figures.built(*_CI))]
    return f"| {' | '.join(cells)} |"
