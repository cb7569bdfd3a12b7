"""Events and invocations of functions without a route: twice, at the same time, out of order, or lost.

Each delivery is a function that checks what its docstring says. The report of `make faults` shows that text.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from larder import clock
from larder.accounts.service import delete_user
from larder.api_keys import keys
from larder.api_keys import repository as key_store
from larder.api_keys.properties import NewKey
from larder.artifacts.repository import index
from larder.teams import teams
from larder.teams.members import role_of
from larder.teams.models import Role
from larder.teams.repository import read_places
from larder.teams.state import change_state
from tests.proofs.fault_scenarios import (
    COMMIT,
    REMOVE,
    SEND,
    SWEEP,
    arrive,
    artifacts_seen,
    check_artifact,
    created,
    evicting,
    expired_key,
    invited,
    made,
    mail_job,
    mail_to,
    member_of,
    removal_job,
    stored_before,
    stored_by,
    sweep_on,
    totals_of,
)
from tests.proofs.fault_world import Subject, World, function, in_hours, later
from tests.proofs.overlapping import Overlap, all_at_once

AT_ONCE = 4


@dataclass(frozen=True)
class Delivery:
    """How AWS delivers something to a function, and the result."""

    function: str
    how: str
    outcome: str
    check: Callable[[Subject], None]

    def __str__(self) -> str:
        return f"{self.function} {self.how}"


DELIVERIES: list[Delivery] = []


def delivery(function: str, how: str) -> Callable[[Callable[[Subject], None]], None]:
    def add(check: Callable[[Subject], None]) -> None:
        assert check.__doc__ is not None
        DELIVERIES.append(Delivery(function, how, " ".join(check.__doc__.split()), check))

    return add


def twice_and_at_once(function: str, check: Callable[..., None]) -> None:
    """`check` gets the way to run the schedule, which the second run does not change."""
    for how, run_it in (("twice", twice), ("overlapping", at_once)):
        checked = partial(check, run_it=run_it)
        DELIVERIES.append(Delivery(function, how, str(check.__doc__), checked))


def run(world: World, one: Delivery) -> Subject:
    """Raises AssertionError if the result is another."""
    world.handed_over.clear()
    subject = Subject(world)
    one.check(subject)
    return subject


def at_once(handler: str, event: object = None, *, held_calls: int = 0) -> None:
    """Run a function AT_ONCE times in parallel. The first `held_calls` calls of each run wait for the others."""
    overlap = Overlap(held=bool(held_calls), seed=0)
    runs = [partial(function, handler, event)] * AT_ONCE
    done = all_at_once(runs, overlap, held_calls=held_calls)
    statuses = {one.answer.status for one in done}
    assert statuses <= {200, 503}, statuses
    if 503 in statuses:
        # Lambda invokes it again.
        assert function(handler, event).status == 200


def twice(handler: str, event: object = None) -> None:
    for _ in range(2):
        assert function(handler, event).status == 200


# S3's events -------------------------------------------------------------------------------------


@delivery("CommitUpload", "twice")
def commit_twice(s: Subject) -> None:
    """The second event finds the upload published. It is counted once."""
    body = made(2_000, signed=False)
    event = arrive(s, body[0])
    twice(COMMIT, event)
    check_artifact(s, body)
    assert totals_of(s) == (2_000, 1)


@delivery("CommitUpload", "overlapping")
def commit_at_once(s: Subject) -> None:
    """One run publishes the upload. It is counted once."""
    body = made(2_000, signed=False)
    event = arrive(s, body[0])
    # The quota and the index entry: all runs read the same before any of them writes.
    at_once(COMMIT, event, held_calls=2)
    check_artifact(s, body)
    assert totals_of(s) == (2_000, 1)


@delivery("CommitUpload", "out of order")
def commit_out_of_order(s: Subject) -> None:
    """The later upload stays, whichever event comes first. The earlier upload is discarded."""
    earlier, later_one = made(1_000, signed=False), made(2_000, signed=False)
    first, second = arrive(s, earlier[0]), arrive(s, later_one[0])
    assert function(COMMIT, second).status == 200
    check_artifact(s, later_one)
    assert function(COMMIT, first).status == 200
    check_artifact(s, later_one)
    assert totals_of(s) == (2_000, 1)


@delivery("CommitUpload", "out of order, after a removal")
def commit_after_removal(s: Subject) -> None:
    """The event does not restore an artifact that was deleted before it arrived."""
    event = arrive(s, made(2_000, signed=False)[0])
    assert s.send("DELETE", f"/v1/artifacts/{s.hash}").status == 200
    assert function(COMMIT, event).status == 200
    check_artifact(s, None)


@delivery("CommitUpload", "never, and a client reads")
def commit_lost_and_read(s: Subject) -> None:
    """The first read publishes the upload."""
    body = made(2_000, signed=False)
    arrive(s, body[0])
    check_artifact(s, body)
    assert totals_of(s) == (2_000, 1)


@delivery("CommitUpload", "never, and no client reads")
def commit_lost(s: Subject) -> None:
    """The sweep publishes the upload a day after the client got its URL."""
    body = made(2_000, signed=False)
    arrive(s, body[0])
    with later(in_hours(25)):
        assert function(SWEEP).status == 200
    assert artifacts_seen(s) == 2_000
    assert totals_of(s) == (2_000, 1)


@delivery("CommitUpload", "of an upload through a function, late and twice")
def commit_inline(s: Subject) -> None:
    """The function has published the upload, so the events change nothing."""
    artifact = made()
    stored_before(s, artifact)
    (name,) = s.world.objects_of(s.team.id)
    key, version = name.rsplit("@", 1)
    twice(COMMIT, created(f"artifacts/{s.team.id}/{key}", 3_000, version))
    check_artifact(s, artifact)
    assert totals_of(s) == (3_000, 1)


# Asynchronous invocations ------------------------------------------------------------------------


@delivery("RemoveArtifacts", "twice")
def remove_twice(s: Subject) -> None:
    """The second run finds nothing to delete. The totals are exact."""
    twice(REMOVE, removal_job(s))
    check_artifact(s, None)
    assert totals_of(s) == (0, 0)


@delivery("RemoveArtifacts", "overlapping")
def remove_at_once(s: Subject) -> None:
    """One of the runs deletes each artifact and counts it out."""
    at_once(REMOVE, removal_job(s))
    check_artifact(s, None)
    assert totals_of(s) == (0, 0)


@delivery("RemoveArtifacts", "never")
def remove_lost(s: Subject) -> None:
    """The sweep finds the requested removal after twenty minutes, and does it."""
    removal_job(s)
    with later(in_hours(1)):
        assert function(SWEEP).status == 200
    assert artifacts_seen(s) is None
    assert totals_of(s) == (0, 0)


@delivery("RemoveArtifacts", "to make room, overlapping")
def evict_at_once(s: Subject) -> None:
    """Together the runs evict no more than one would have."""
    change_state(s.team.id, quota_bytes=10_000)
    with evicting(s):
        for number in range(3):
            stored_before(s, made(3_200), f"{s.tag}{number}")
        at_once(REMOVE, {"kind": "least_recently_used", "owner": s.team.id, "writer": None})
    assert totals_of(s) == (6_400, 2)


@delivery("SendAccountEmail", "twice")
def mail_twice(s: Subject) -> None:
    """Larder sends two messages, and both links work."""
    twice(SEND, mail_job(s, "verify_email"))
    assert mail_to(s.user.email) == 2


@delivery("SendAccountEmail", "overlapping")
def mail_at_once(s: Subject) -> None:
    """Each run sends a message."""
    at_once(SEND, mail_job(s, "reset_password"))
    assert mail_to(s.user.email) >= AT_ONCE


@delivery("SendAccountEmail", "never")
def mail_lost(s: Subject) -> None:
    """Larder sends no mail. The user asks again, and gets a message."""
    assert mail_to(s.user.email) == 0
    reply = s.ask("POST", "/send-verification-email", {"email": s.user.email})
    assert reply.status == 200
    s.world.run_jobs()
    assert mail_to(s.user.email) == 1


# Schedules ---------------------------------------------------------------------------------------


def to_be_swept(s: Subject) -> None:
    stored_before(s, made())
    stored_before(s, made())
    arrive(s, b"never announced")


def check_swept(s: Subject) -> None:
    assert len(s.world.objects_of(s.team.id)) == 1
    assert totals_of(s)[1] == 1


@delivery("SweepArtifacts", "twice")
def sweep_twice(s: Subject) -> None:
    """The second run finds nothing to do."""
    to_be_swept(s)
    for hours in (25, 26):
        with later(in_hours(hours)):
            twice(SWEEP)
    check_swept(s)


@delivery("SweepArtifacts", "overlapping")
def sweep_at_once(s: Subject) -> None:
    """Each item is handled once. The totals are exact."""
    to_be_swept(s)
    for hours in (25, 26, 28):
        with later(in_hours(hours)):
            at_once(SWEEP)
    check_swept(s)


@delivery("SweepArtifacts", "not for days")
def sweep_late(s: Subject) -> None:
    """Clients see no difference. The next run catches up."""
    stored_before(s, made())
    with later(timedelta(days=40)):
        assert s.send("GET", f"/v8/artifacts/{s.hash}").status == 404
        assert function(SWEEP).status == 200
        assert artifacts_seen(s) is None
    sweep_on(s, timedelta(days=40))


def _check_expired(s: Subject, run_it: Callable[[str], None]) -> None:
    """Keys that have not expired stay."""
    gone = expired_key(s)
    run_it("api_keys.sweep_expired_keys.handler")
    assert key_store.get(gone) is None
    assert key_store.get(s.key.key_hash) is not None


twice_and_at_once("SweepExpiredKeys", _check_expired)


@delivery("SweepExpiredKeys", "not for days")
def expire_late(s: Subject) -> None:
    """Larder refuses expired keys, whether or not they are deleted."""
    _, token = keys.create_key(NewKey(user_id=s.user.id, expires_in_s=1), now=clock.now() - timedelta(seconds=2))
    assert s.sender(token)("GET", "/v8/artifacts/status").status == 401


def _check_user_gone(s: Subject, run_it: Callable[[str], None]) -> None:
    """Keys, memberships and the user's artifacts are deleted once. The team's count of owners is exact."""
    bob = member_of(s, Role.OWNER)
    key, token = keys.create_key(NewKey(user_id=bob.id), now=clock.now())
    stored_by(s, bob, token)
    delete_user(bob.id, now=clock.now())
    for hours in (1, 26):
        with later(in_hours(hours)):
            run_it("accounts.sweep_deleted_users.handler")
    assert key_store.get(key.key_hash) is None
    assert role_of(s.team.id, bob.id) is None
    assert read_places(s.team.id).owners == 1
    assert list(index.stored_by(bob.id)) == []


twice_and_at_once("SweepDeletedUsers", _check_user_gone)


@delivery("SweepDeletedUsers", "not for days")
def sweep_users_late(s: Subject) -> None:
    """Larder refuses the sessions of a deleted user, and their keys for a team."""
    bob = member_of(s)
    session = s.session(bob)
    delete_user(bob.id, now=clock.now())
    assert s.ask("GET", "/get-session", token=session).body == b"null"


def _check_team_gone(s: Subject, run_it: Callable[[str], None]) -> None:
    """The team's artifacts are deleted once."""
    stored_before(s, made())
    invited(s)
    teams.delete_team(s.team.id, by=None, now=clock.now())
    for hours in (1, 26):
        with later(in_hours(hours)):
            run_it("teams.sweep_deleted_teams.handler")
    assert artifacts_seen(s) is None
    assert role_of(s.team.id, s.user.id) is None


twice_and_at_once("SweepDeletedTeams", _check_team_gone)


@delivery("SweepDeletedTeams", "not for days")
def sweep_teams_late(s: Subject) -> None:
    """The team is gone for all clients at once. Its artifacts are left, but no one can read them."""
    stored_before(s, made())
    teams.delete_team(s.team.id, by=None, now=clock.now())
    assert s.send("GET", f"/v8/artifacts/{s.hash}").status in (401, 403)
