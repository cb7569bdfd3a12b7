"""DELETE /v1/artifacts"""

from datetime import timedelta
from typing import Any

import pytest

from larder import clock
from larder.accounts.service import create_user
from larder.accounts.sessions import start_session
from larder.api_keys.keys import create_key
from larder.api_keys.properties import NewKey
from larder.artifacts import sweep
from larder.artifacts.models import Totals
from larder.artifacts.repository.index import stored_by
from larder.artifacts.repository.totals import read_totals
from larder.artifacts.sweep import SweepReport
from larder.audit.models import Action
from larder.audit.service import read_entries
from larder.hashing import random_id
from larder.teams.members import add_member
from larder.teams.models import Role
from tests.faults import unreachable
from tests.proofs.aws_calls import counted
from tests.requests import Cloud, Reply, Sender, invoke

HOUR = timedelta(hours=1)


@pytest.fixture
def bob(cloud: Cloud) -> Cloud:
    """Bob, a member of the team, with a key for that team."""
    now = clock.now()
    user = create_user("bob@acme.example", "Bob", now=now)
    add_member(cloud.team.id, user.id, Role.MEMBER, now=now)
    key, token = create_key(NewKey(user_id=user.id, team_id=cloud.team.id), now=now)
    return Cloud(user=user, team=cloud.team, key=key, token=token, send=Sender(token, slug="acme"))


@pytest.fixture
def stored(cloud: Cloud, bob: Cloud) -> Cloud:
    """Two artifacts from Ada's key, two from Bob's key, and one from Bob's session."""
    session = Sender(start_session(bob.user, now=clock.now())[1], slug="acme")
    for send, hashes in ((cloud.send, "ac"), (bob.send, "bd"), (session, "e")):
        for hash in hashes:
            assert send("PUT", f"/v8/artifacts/{hash}", body=b"artifact").status == 202
    return cloud


def delete(manage: Sender, writer: str) -> Reply:
    reply = manage.asking(writer=writer)("DELETE", "/v1/artifacts")
    assert reply.status == 202, reply
    return reply


def do(jobs: list[dict[str, Any]]) -> None:
    while jobs:
        invoke("artifacts.remove_artifacts.handler", jobs.pop(0))


def left(cloud: Cloud) -> str:
    return "".join(sorted(one.upload.hash for one in stored_by(cloud.team.id)))


def test_the_reply_is_immediate_and_the_keys_artifacts_are_deleted_afterwards(
    stored: Cloud, bob: Cloud, manage: Sender, removal_jobs: list[dict[str, Any]]
) -> None:
    reply = delete(manage, bob.key.id)
    assert reply.json["removal"]["writer"] == bob.key.id
    assert left(stored) == "abcde"
    job = {"kind": "removal", "owner": stored.team.id, "target": bob.key.id}
    assert removal_jobs == [job]
    do(removal_jobs)
    assert left(stored) == "ace"
    assert read_totals(stored.team.id) == Totals(size_bytes=24, artifacts=3)


def test_artifacts_of_a_user_are_deleted_for_every_key_and_session(
    stored: Cloud, bob: Cloud, manage: Sender, removal_jobs: list[dict[str, Any]]
) -> None:
    delete(manage, bob.user.id)
    do(removal_jobs)
    assert left(stored) == "ac"


def test_an_unknown_writer_deletes_nothing(stored: Cloud, manage: Sender, removal_jobs: list[dict[str, Any]]) -> None:
    delete(manage, random_id())
    do(removal_jobs)
    assert left(stored) == "abcde"


def test_uploads_after_the_request_stay(
    stored: Cloud, bob: Cloud, manage: Sender, removal_jobs: list[dict[str, Any]]
) -> None:
    delete(manage, bob.key.id)
    later = clock.now() + 2 * HOUR
    for hash in ("b", "new"):
        stored.store(hash, b"again", writer=bob.writer, now=later)
    do(removal_jobs)
    assert sorted(one.upload.hash for one in stored_by(stored.team.id)) == ["a", "b", "c", "e", "new"]


def test_artifacts_of_another_owner_stay(
    stored: Cloud, bob: Cloud, manage: Sender, removal_jobs: list[dict[str, Any]]
) -> None:
    own = Sender(create_key(NewKey(user_id=bob.user.id), now=clock.now())[1])
    own("PUT", "/v8/artifacts/own", body=b"artifact")
    delete(manage, bob.user.id)
    do(removal_jobs)
    assert own("GET", "/v8/artifacts/own").status == 200


def test_the_sweep_performs_a_removal_whose_job_was_lost(
    stored: Cloud, bob: Cloud, manage: Sender, removal_jobs: list[dict[str, Any]]
) -> None:
    delete(manage, bob.key.id)
    removal_jobs.clear()
    # The function gets its time first.
    assert sweep.sweep(now=clock.now()).removals == 0
    assert sweep.sweep(now=clock.now() + HOUR).removals == 1
    assert left(stored) == "ace"


def test_the_request_succeeds_even_if_the_job_cannot_be_invoked(stored: Cloud, bob: Cloud, manage: Sender) -> None:
    with unreachable("lambda", "Invoke"):
        delete(manage, bob.key.id)
    sweep.sweep(now=clock.now() + HOUR)
    assert left(stored) == "ace"


def test_the_sweep_checks_once_more_and_then_stops(
    stored: Cloud, bob: Cloud, manage: Sender, removal_jobs: list[dict[str, Any]]
) -> None:
    delete(manage, bob.key.id)
    do(removal_jobs)
    now = clock.now()
    looks = [hours for hours in range(1, 40) if sweep.sweep(now=now + hours * HOUR).removals]
    assert looks == [25]
    assert sweep.sweep(now=now + 40 * HOUR) == SweepReport()


def test_the_audit_log_records_the_request_and_its_outcome(
    stored: Cloud, bob: Cloud, manage: Sender, removal_jobs: list[dict[str, Any]], caplog: pytest.LogCaptureFixture
) -> None:
    delete(manage, bob.key.id)
    do(removal_jobs)
    sweep.sweep(now=clock.now() + 27 * HOUR)
    done, request, *_ = read_entries(stored.team.id, limit=10, now=clock.now()).entries
    assert (request.action, request.subject) == (Action.REMOVAL_ASKED, bob.key.id)
    assert (done.action, done.subject) == (Action.REMOVAL_DONE, bob.key.id)
    assert (done.artifacts, done.size_bytes) == (2, 16)
    assert request.actor == done.actor
    assert request.actor is not None
    assert request.actor.user_id == stored.user.id
    lines = {record.message: record.__dict__ for record in caplog.records}
    line = lines["audit"]
    assert (line["action"], line["subject"]) == ("removal_asked", bob.key.id)
    line = lines["removed artifacts"]
    assert (line["target"], line["artifacts"], line["finished"]) == (bob.key.id, 2, True)


@pytest.mark.slow
def test_the_cost_of_the_request_does_not_depend_on_the_number_of_artifacts(
    stored: Cloud, bob: Cloud, manage: Sender, removal_jobs: list[dict[str, Any]]
) -> None:
    delete(manage, random_id())
    seen = []
    for _ in range(2):
        for number in range(60):
            bob.send("PUT", f"/v8/artifacts/{number}", body=b"artifact")
        with counted() as calls:
            delete(manage, bob.key.id)
        seen.append(calls.steps)
    assert seen == [[["BatchGetItem"], ["TransactWriteItems"]]] * 2


@pytest.mark.parametrize(
    "writer",
    [
        None, "", "nobody", "bob@acme.example", "x" * 31, "x" * 33, "x" * 64, "team_" + "x" * 24, "a" * 31 + "_",
        "%C3%A9" * 32, "..%2f",
    ],
)  # fmt: skip
def test_400_for_an_invalid_writer_and_nothing_is_requested(
    stored: Cloud, manage: Sender, removal_jobs: list[dict[str, Any]], writer: str | None
) -> None:
    asking = manage if writer is None else manage.asking(writer=writer)
    reply = asking("DELETE", "/v1/artifacts")
    assert (reply.status, reply.code) == (400, "bad_request")
    message = "writer: must be the id of a key, a session, a user or a rule"
    assert reply.message == message
    assert removal_jobs == []
