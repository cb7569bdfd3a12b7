"""Types of explanations."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from larder.actor import Actor
from larder.artifacts.models import View
from larder.misses.records import ComparisonJson
from larder.rate_limits.reports import Sender
from larder.teams.models import Team


class NoCauses(StrEnum):
    """Why a run is not explained."""

    INPUTS_OFF = "inputs_off"
    """The team keeps no inputs of runs."""
    NO_INPUTS = "no_inputs"
    """The report has none."""
    NO_BASELINE = "no_baseline"
    """There is no run to compare with."""
    NO_TIME = "no_time"
    TOO_MANY = "too_many"
    """The caller, the team or the deployment has stored too many inputs today."""
    FAILED = "failed"


class Explained(NamedTuple):
    """The explanation, or why there is none."""

    explanation: ComparisonJson | None = None
    missing: NoCauses | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who reports or asks, and what they see of the artifacts. `team` is None for a user's own cache.

    `own_scope` is the scope that the caller writes in a protected team, None for the shared one. What others are
    compared with comes from callers who are `trusted`. A caller that `only_reads` never is. What the caller stores is
    counted for `sender`, and comparisons for `compares_as`.
    """

    sender: Sender
    compares_as: str
    team: Team | None
    view: View
    trusted: bool
    only_reads: bool
    actor: Actor

    @property
    def owner(self) -> str:
        return self.sender.owner

    @property
    def own_scope(self) -> str | None:
        return self.view.scope


Report = Mapping[str, Any]
"""The JSON of `larder.misses.inputs`, of the right shape."""
