"""Jobs that requests hand over, by asynchronous invocation"""

from datetime import timedelta
from typing import Any

import pytest

from larder import clock
from larder.artifacts import delete_by_writer, sweep
from larder.artifacts.models import ArtifactHash, Totals
from larder.artifacts.repository.index import read_entry
from larder.artifacts.repository.sweep_queue import read_removal
from larder.artifacts.repository.totals import read_totals
from larder.audit.models import OPERATOR
from larder.audit.service import read_entries
from larder.errors import TryAgain
from tests.direct_uploads import announce, offer, put_object
from tests.faults import answering, error
from tests.requests import Cloud, Context, invoke

HANDLER = "artifacts.remove_artifacts.handler"
HOUR = timedelta(hours=1)


@pytest.fixture
def asked(cloud: Cloud, removal_jobs: list[dict[str, Any]]) -> Cloud:
    """What the key of `cloud` wrote is to go: three artifacts."""
    for number in range(3):
        cloud.send("PUT", f"/v8/artifacts/{number}", body=b"artifact")
    delete_by_writer.ask_removal(cloud.team.id, cloud.key.id, by=cloud.writer, now=clock.now())
    return cloud


def job(cloud: Cloud) -> dict[str, str]:
    return {"kind": "written", "owner": cloud.team.id, "writer": cloud.key.id}


def test_the_job_is_done(asked: Cloud) -> None:
    invoke(HANDLER, job(asked))
    assert read_totals(asked.team.id) == Totals()


def test_a_job_that_comes_twice_does_nothing_more(asked: Cloud) -> None:
    invoke(HANDLER, job(asked))
    invoke(HANDLER, job(asked))
    assert read_totals(asked.team.id) == Totals()


def test_a_job_that_nobody_asked_for_does_nothing(cloud: Cloud) -> None:
    cloud.send("PUT", "/v8/artifacts/abc", body=b"artifact")
    invoke(HANDLER, job(cloud))
    assert read_totals(cloud.team.id).artifacts == 1


def test_a_removal_job_without_a_writer_is_an_error(asked: Cloud) -> None:
    with pytest.raises(ValueError, match="does not name a writer"):
        invoke(HANDLER, {"kind": "written", "owner": asked.team.id})
    assert read_totals(asked.team.id).artifacts == 3


def test_what_there_is_no_time_for_is_left_to_the_sweep(asked: Cloud) -> None:
    invoke(HANDLER, job(asked), Context(remaining_ms=1_000))
    assert read_totals(asked.team.id).artifacts == 3
    sweep.sweep(now=clock.now() + HOUR)
    assert read_totals(asked.team.id) == Totals()


def test_what_fails_is_left_to_the_sweep(asked: Cloud) -> None:
    conflict = error(
        "TransactionCanceledException", CancellationReasons=[{"Code": "TransactionConflict"}]
    )
    with answering("dynamodb", "TransactWriteItems", conflict):
        report = delete_by_writer.do_job(asked.team.id, asked.key.id, now=clock.now())
    assert (report.failed, report.finished) == (3, False)
    sweep.sweep(now=clock.now() + HOUR)
    assert read_totals(asked.team.id) == Totals()


def test_an_error_is_raised_so_that_lambda_tries_again(asked: Cloud) -> None:
    with (
        answering("dynamodb", "Query", error("InternalServerError", 500)),
        pytest.raises(TryAgain),
    ):
        invoke(HANDLER, job(asked))
    invoke(HANDLER, job(asked))
    assert read_totals(asked.team.id) == Totals()


def test_an_upload_that_nobody_knew_of_is_removed_by_the_last_look(
    cloud: Cloud, removal_jobs: list[dict[str, Any]]
) -> None:
    # The second offer took the place of the first, which the index knows no more.
    first = offer(cloud.send, "abc")
    offer(cloud.send, "abc")
    delete_by_writer.ask_removal(cloud.team.id, cloud.key.id, by=cloud.writer, now=clock.now())
    invoke(HANDLER, job(cloud))
    put_object(first, b"came late")
    announce(first)
    assert read_entry(cloud.team.id, ArtifactHash("abc")).artifact is not None
    sweep.sweep(now=clock.now() + 26 * HOUR)
    assert read_entry(cloud.team.id, ArtifactHash("abc")).artifact is None
    assert read_totals(cloud.team.id) == Totals()


def test_asked_for_again_what_came_in_between_goes_too(asked: Cloud) -> None:
    invoke(HANDLER, job(asked))
    asked.send("PUT", "/v8/artifacts/abc", body=b"in between")
    again = clock.now() + timedelta(minutes=1)
    delete_by_writer.ask_removal(asked.team.id, asked.key.id, by=asked.writer, now=again)
    invoke(HANDLER, job(asked))
    assert read_totals(asked.team.id) == Totals()


def test_the_end_of_an_earlier_removal_does_not_end_a_later_one(asked: Cloud) -> None:
    earlier = read_removal(asked.team.id, asked.key.id)
    assert earlier is not None
    later = clock.now() + timedelta(minutes=1)
    delete_by_writer.ask_removal(asked.team.id, asked.key.id, by=asked.writer, now=later)
    delete_by_writer.carry_out(earlier, now=clock.now() + 26 * HOUR)
    current = read_removal(asked.team.id, asked.key.id)
    assert current is not None
    assert current.asked_at == later


def test_the_operator_waits_for_it(cloud: Cloud) -> None:
    cloud.send("PUT", "/v8/artifacts/abc", body=b"artifact")
    report = delete_by_writer.remove_now(cloud.team.id, cloud.user.id, now=clock.now())
    assert (report.artifacts, report.size_bytes, report.finished) == (1, 8, True)
    entries = read_entries(cloud.team.id, limit=10, now=clock.now()).entries
    assert [entry.actor for entry in entries] == [OPERATOR, OPERATOR]
