"""What protection costs in hits, on a short day: the real turbo gets the hits that the scopes allow.

`make working-day` plays a whole day.
"""

from __future__ import annotations

import pytest

from tools.benchmarks.working_day.__main__ import DAY, measure
from tools.benchmarks.working_day.model import Place, Policy, predicted
from tools.benchmarks.working_day.plan import Action, Day

pytestmark = pytest.mark.e2e

SHORT = Day(engineers=2, changes=2, pushes=2, builds=1, packages=12, seed=1)
TEAMS = (Policy.OPEN, Policy.PROTECTED)


@pytest.mark.thorough
def test_every_hit_is_one_that_the_scopes_allow() -> None:
    played = measure(SHORT, TEAMS)
    assert played.steps == SHORT.steps()
    assert played.figures == {policy: predicted(SHORT, policy, played.steps) for policy in TEAMS}
    unprotected, protected = (played.figures[policy] for policy in TEAMS)
    # A pull request has built what is new on main.
    assert unprotected.built(Place.MAIN) == 0 < protected.built(Place.MAIN)


def test_a_day_costs_a_protected_team_at_most_one_and_a_half_points() -> None:
    unprotected, protected = (predicted(DAY, policy, DAY.steps()) for policy in TEAMS)
    assert unprotected.hit_rate() - protected.hit_rate() <= 1.5


def test_the_same_seed_plans_the_same_day() -> None:
    assert SHORT.steps() == SHORT.steps()
    assert SHORT.monorepo() == SHORT.monorepo()
    assert {step.action for step in SHORT.steps()} == {*Action}
