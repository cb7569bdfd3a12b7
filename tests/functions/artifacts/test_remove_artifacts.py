"""Asynchronous invocation by requests that remove or evict artifacts"""

from datetime import timedelta
from typing import Any

import pytest

from larder import clock
from larder.artifacts import removals, sweep
from larder.artifacts.models import ArtifactHash, Totals
from larder.artifacts.repository.index import read_entry
from larder.artifacts.repository.sweep_queue import read_removal
from larder.artifacts.repository.totals import read_totals
from larder.audit.service import read_entries
from larder.errors import TryAgain
from tests.direct_uploads import announce, offer, put_object
from tests.faults import answering, error
from tests.requests import Cloud, Context, invoke

HANDLER = "artifacts.remove_artifacts.handler"
HOUR = timedelta(hours=1)


@pytest.fixture
def requested(cloud: Cloud, removal_jobs: list[dict[str, Any]]) -> Cloud:
    """A team that has requested the removal of the key's three artifacts."""
    for number in range(3):
        cloud.send("PUT", f"/v8/artifacts/{number}", body=b"artifact")
    removals.ask_removal(cloud.team.id, cloud.key.id, by=cloud.writer, now=clock.now())
    return cloud


def job(cloud: Cloud) -> dict[str, str]:
    return {"kind": "removal", "owner": cloud.team.id, "target": cloud.key.id}


def test_the_job_deletes_the_artifacts(requested: Cloud) -> None:
    invoke(HANDLER, job(requested))
    assert read_totals(requested.team.id) == Totals()


def test_a_repeated_job_does_nothing_more(requested: Cloud) -> None:
    invoke(HANDLER, job(requested))
    invoke(HANDLER, job(requested))
    assert read_totals(requested.team.id) == Totals()


def test_a_job_that_was_not_requested_does_nothing(cloud: Cloud) -> None:
    cloud.send("PUT", "/v8/artifacts/abc", body=b"artifact")
    invoke(HANDLER, job(cloud))
    assert read_totals(cloud.team.id).artifacts == 1


def test_a_removal_job_without_a_writer_is_an_error(requested: Cloud) -> None:
    with pytest.raises(ValueError, match="does not name a target"):
        invoke(HANDLER, {"kind": "removal", "owner": requested.team.id})
    assert read_totals(requested.team.id).artifacts == 3


def test_when_time_runs_out_the_rest_is_left_to_the_sweep(requested: Cloud) -> None:
    invoke(HANDLER, job(requested), Context(remaining_ms=1_000))
    assert read_totals(requested.team.id).artifacts == 3
    sweep.sweep(now=clock.now() + HOUR)
    assert read_totals(requested.team.id) == Totals()


def test_a_failed_removal_is_left_to_the_sweep(requested: Cloud) -> None:
    conflict = error("TransactionCanceledException", CancellationReasons=[{"Code": "TransactionConflict"}])
    with answering("dynamodb", "TransactWriteItems", conflict):
        report = removals.do_job(requested.team.id, requested.key.id, now=clock.now())
    assert (report.failed, report.finished) == (3, False)
    sweep.sweep(now=clock.now() + HOUR)
    assert read_totals(requested.team.id) == Totals()


def test_an_error_is_raised_so_that_lambda_retries(requested: Cloud) -> None:
    with answering("dynamodb", "Query", error("InternalServerError", 500)), pytest.raises(TryAgain):
        invoke(HANDLER, job(requested))
    invoke(HANDLER, job(requested))
    assert read_totals(requested.team.id) == Totals()


def test_the_last_check_deletes_an_upload_whose_offer_was_replaced(
    cloud: Cloud, removal_jobs: list[dict[str, Any]]
) -> None:
    # The second offer replaced the first in the index.
    first = offer(cloud.send, "abc")
    offer(cloud.send, "abc")
    removals.ask_removal(cloud.team.id, cloud.key.id, by=cloud.writer, now=clock.now())
    invoke(HANDLER, job(cloud))
    put_object(first, b"came late")
    announce(first)
    assert read_entry(cloud.team.id, ArtifactHash("abc")).artifact is not None
    sweep.sweep(now=clock.now() + 26 * HOUR)
    assert read_entry(cloud.team.id, ArtifactHash("abc")).artifact is None
    assert read_totals(cloud.team.id) == Totals()


def test_a_second_request_deletes_later_uploads_too(requested: Cloud) -> None:
    invoke(HANDLER, job(requested))
    requested.send("PUT", "/v8/artifacts/abc", body=b"in between")
    again = clock.now() + timedelta(minutes=1)
    removals.ask_removal(requested.team.id, requested.key.id, by=requested.writer, now=again)
    invoke(HANDLER, job(requested))
    assert read_totals(requested.team.id) == Totals()


def test_the_end_of_an_earlier_removal_does_not_end_a_later_one(requested: Cloud) -> None:
    earlier = read_removal(requested.team.id, requested.key.id)
    assert earlier is not None
    later = clock.now() + timedelta(minutes=1)
    removals.ask_removal(requested.team.id, requested.key.id, by=requested.writer, now=later)
    removals.carry_out(earlier, now=clock.now() + 26 * HOUR)
    current = read_removal(requested.team.id, requested.key.id)
    assert current is not None
    assert current.asked_at == later


def test_the_operators_command_waits_for_it(cloud: Cloud) -> None:
    cloud.send("PUT", "/v8/artifacts/abc", body=b"artifact")
    report = removals.delete_target_now(cloud.team.id, cloud.user.id, now=clock.now())
    assert (report.artifacts, report.size_bytes, report.finished) == (1, 8, True)
    entries = read_entries(cloud.team.id, limit=10, now=clock.now()).entries
    actions = {entry.action.value: entry.actor for entry in entries}
    assert (actions["removal_asked"], actions["removal_done"]) == (None, None)
