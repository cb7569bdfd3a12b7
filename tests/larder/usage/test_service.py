"""Record what clients report."""

import pytest

from larder import clock
from larder.errors import TryAgain
from larder.usage.models import Figures, Reporter, UsageEvent
from larder.usage.repository import read_day
from larder.usage.service import record
from tests.faults import answering, error

HIT = UsageEvent(session_id="s", source="REMOTE", event="HIT", hash="abc", duration_ms=10)
REPORTER = Reporter(key_id="key", ci=None, interactive=None)


CONFLICT = error(
    "TransactionCanceledException",
    CancellationReasons=[{"Code": "None"}, {"Code": "TransactionConflict"}],
)


def test_builds_that_end_in_the_same_moment_are_all_counted(aws_in_memory: None) -> None:
    with answering("dynamodb", "TransactWriteItems", CONFLICT, times=3) as conflicts:
        record("team_a", [HIT], REPORTER, now=clock.now())
    assert len(conflicts) == 3
    assert read_day("team_a", clock.now().date()).hits == 1


def test_a_batch_that_always_meets_another_is_told_and_not_half_counted(
    aws_in_memory: None,
) -> None:
    with answering("dynamodb", "TransactWriteItems", CONFLICT), pytest.raises(TryAgain):
        record("team_a", [HIT], REPORTER, now=clock.now())
    assert read_day("team_a", clock.now().date()) == Figures()
