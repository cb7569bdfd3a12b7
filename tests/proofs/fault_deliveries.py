"""What wakes functions without a route comes at least once, in any order, sometimes twice at a time, sometimes never.

Each delivery is a function of the world that checks what its first line says; docs/faults.md shows that line.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from larder import clock
from larder.accounts.service import remove_user
from larder.api_keys import repository as key_store
from larder.api_keys import service as keys
from larder.api_keys.models import NewKey
from larder.artifacts.repository import index
from larder.teams import management
from larder.teams.models import Role
from larder.teams.repository import read_places
from larder.teams.service import change_state, role_of
from tests.proofs.fault_scenarios import (
    COMMIT,
    REMOVE,
    SEND,
    SWEEP,
    arrive,
    artifacts_seen,
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
    whole,
)
from tests.proofs.fault_world import Subject, World, function, in_hours, later
from tests.proofs.overlapping import Overlap, all_at_once

AT_ONCE = 4


@dataclass(frozen=True)
class Delivery:
    """`how` something reaches `function`, and what comes of it."""

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


def run(world: World, one: Delivery) -> Subject:
    """Raises AssertionError when something else comes of it."""
    world.handed_over.clear()
    subject = Subject(world)
    one.check(subject)
    return subject


def at_once(handler: str, event: object = None, *, held_calls: int = 0) -> None:
    """Four runs that begin together; none of the first `held_calls` of each leaves before all are about to."""
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
    """The second one finds the upload settled: it is counted once."""
    body = made(2_000, signed=False)
    event = arrive(s, body[0])
    twice(COMMIT, event)
    whole(s, body)
    assert totals_of(s) == (2_000, 1)


@delivery("CommitUpload", "overlapping")
def commit_at_once(s: Subject) -> None:
    """One of them publishes the upload, and it is counted once."""
    body = made(2_000, signed=False)
    event = arrive(s, body[0])
    # Its quota, and what stands in the index: all of them see the same before any of them acts.
    at_once(COMMIT, event, held_calls=2)
    whole(s, body)
    assert totals_of(s) == (2_000, 1)


@delivery("CommitUpload", "out of order")
def commit_out_of_order(s: Subject) -> None:
    """The later upload stays, whichever event comes first; the earlier one's object is discarded."""
    earlier, later_one = made(1_000, signed=False), made(2_000, signed=False)
    first, second = arrive(s, earlier[0]), arrive(s, later_one[0])
    assert function(COMMIT, second).status == 200
    whole(s, later_one)
    assert function(COMMIT, first).status == 200
    whole(s, later_one)
    assert totals_of(s) == (2_000, 1)


@delivery("CommitUpload", "out of order, after a removal")
def commit_after_removal(s: Subject) -> None:
    """What was deleted before the event came does not come back."""
    event = arrive(s, made(2_000, signed=False)[0])
    assert s.send("DELETE", f"/v1/artifacts/{s.hash}").status == 200
    assert function(COMMIT, event).status == 200
    whole(s, None)


@delivery("CommitUpload", "never; somebody reads")
def commit_lost_and_read(s: Subject) -> None:
    """The first reader settles the upload."""
    body = made(2_000, signed=False)
    arrive(s, body[0])
    whole(s, body)
    assert totals_of(s) == (2_000, 1)


@delivery("CommitUpload", "never; nobody reads")
def commit_lost(s: Subject) -> None:
    """The sweep settles the upload a day after it was offered."""
    body = made(2_000, signed=False)
    arrive(s, body[0])
    with later(in_hours(25)):
        assert function(SWEEP).status == 200
    assert artifacts_seen(s) == 2_000
    assert totals_of(s) == (2_000, 1)


@delivery("CommitUpload", "of an upload through a function, late and twice")
def commit_inline(s: Subject) -> None:
    """The function has published it: the events change nothing."""
    artifact = made()
    stored_before(s, artifact)
    (name,) = s.world.objects_of(s.team.id)
    twice(COMMIT, created(f"artifacts/{s.team.id}/{name}", 3_000))
    whole(s, artifact)
    assert totals_of(s) == (3_000, 1)


# Asynchronous invocations ------------------------------------------------------------------------


@delivery("RemoveArtifacts", "twice")
def remove_twice(s: Subject) -> None:
    """The second run finds nothing left; the totals are exact."""
    twice(REMOVE, removal_job(s))
    whole(s, None)
    assert totals_of(s) == (0, 0)


@delivery("RemoveArtifacts", "overlapping")
def remove_at_once(s: Subject) -> None:
    """Each artifact is removed, and counted out, by one of them."""
    at_once(REMOVE, removal_job(s))
    whole(s, None)
    assert totals_of(s) == (0, 0)


@delivery("RemoveArtifacts", "never")
def remove_lost(s: Subject) -> None:
    """The sweep finds what was asked for after twenty minutes, and does it."""
    removal_job(s)
    with later(in_hours(1)):
        assert function(SWEEP).status == 200
    assert artifacts_seen(s) is None
    assert totals_of(s) == (0, 0)


@delivery("RemoveArtifacts", "to make room, overlapping")
def evict_at_once(s: Subject) -> None:
    """Together they evict no more than one would have."""
    change_state(s.team.id, quota_bytes=10_000)
    with evicting(s):
        for number in range(3):
            stored_before(s, made(3_200), f"{s.tag}{number}")
        at_once(REMOVE, {"kind": "least_recently_used", "owner": s.team.id, "writer": None})
    assert totals_of(s) == (6_400, 2)


@delivery("SendAccountEmail", "twice")
def mail_twice(s: Subject) -> None:
    """Two messages go out, and both links work."""
    twice(SEND, mail_job(s, "verify_email"))
    assert mail_to(s.user.email) == 2


@delivery("SendAccountEmail", "overlapping")
def mail_at_once(s: Subject) -> None:
    """As many messages go out as there are runs."""
    at_once(SEND, mail_job(s, "reset_password"))
    assert mail_to(s.user.email) >= AT_ONCE


@delivery("SendAccountEmail", "never")
def mail_lost(s: Subject) -> None:
    """No mail goes out. Whoever waits for it asks again, and gets one."""
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
    """Each item is dealt with once; the totals are exact."""
    to_be_swept(s)
    for hours in (25, 26, 28):
        with later(in_hours(hours)):
            at_once(SWEEP)
    check_swept(s)


@delivery("SweepArtifacts", "not for days")
def sweep_late(s: Subject) -> None:
    """Readers see no difference; the next run catches up."""
    stored_before(s, made())
    with later(timedelta(days=40)):
        assert s.send("GET", f"/v8/artifacts/{s.hash}").status == 404
        assert function(SWEEP).status == 200
        assert artifacts_seen(s) is None
    sweep_on(s, timedelta(days=40))


def _check_expired(s: Subject, run_it: Callable[[str], None]) -> None:
    gone = expired_key(s)
    run_it("api_keys.remove_expired_keys.handler")
    assert key_store.get(gone) is None
    assert key_store.get(s.key.key_hash) is not None


@delivery("RemoveExpiredKeys", "twice")
def expire_twice(s: Subject) -> None:
    """The second run finds nothing to do."""
    _check_expired(s, twice)


@delivery("RemoveExpiredKeys", "overlapping")
def expire_at_once(s: Subject) -> None:
    """Keys that count are left alone."""
    _check_expired(s, at_once)


@delivery("RemoveExpiredKeys", "not for days")
def expire_late(s: Subject) -> None:
    """An expired key is refused all the same."""
    _, token = keys.create_key(
        NewKey(user_id=s.user.id, expires_in_s=1), now=clock.now() - timedelta(seconds=2)
    )
    assert s.sender(token)("GET", "/v8/artifacts/status").status == 401


def _check_user_gone(s: Subject, run_it: Callable[[str], None]) -> None:
    bob = member_of(s, Role.OWNER)
    key, token = keys.create_key(NewKey(user_id=bob.id), now=clock.now())
    stored_by(s, bob, token)
    remove_user(bob.id, now=clock.now())
    for hours in (1, 26):
        with later(in_hours(hours)):
            run_it("accounts.forget_deleted_users.handler")
    assert key_store.get(key.key_hash) is None
    assert role_of(s.team.id, bob.id) is None
    assert read_places(s.team.id).owners == 1
    assert list(index.stored_by(bob.id)) == []


@delivery("ForgetDeletedUsers", "twice")
def forget_users_twice(s: Subject) -> None:
    """The second run finds nothing to do."""
    _check_user_gone(s, twice)


@delivery("ForgetDeletedUsers", "overlapping")
def forget_users_at_once(s: Subject) -> None:
    """Keys and memberships end, and what the user stored is removed, once; the team's count of owners is exact."""
    _check_user_gone(s, at_once)


@delivery("ForgetDeletedUsers", "not for days")
def forget_users_late(s: Subject) -> None:
    """Sessions of a deleted user do not count, nor may a key of theirs act for a team without a member."""
    bob = member_of(s)
    session = s.session(bob)
    remove_user(bob.id, now=clock.now())
    assert s.ask("GET", "/get-session", token=session).body == b"null"


def _check_team_gone(s: Subject, run_it: Callable[[str], None]) -> None:
    stored_before(s, made())
    invited(s)
    management.delete_team(s.team.id, by=None, now=clock.now())
    for hours in (1, 26):
        with later(in_hours(hours)):
            run_it("teams.forget_deleted_teams.handler")
    assert artifacts_seen(s) is None
    assert role_of(s.team.id, s.user.id) is None


@delivery("ForgetDeletedTeams", "twice")
def forget_teams_twice(s: Subject) -> None:
    """The second run finds nothing to do."""
    _check_team_gone(s, twice)


@delivery("ForgetDeletedTeams", "overlapping")
def forget_teams_at_once(s: Subject) -> None:
    """What the team stored is removed once."""
    _check_team_gone(s, at_once)


@delivery("ForgetDeletedTeams", "not for days")
def forget_teams_late(s: Subject) -> None:
    """The team is gone for everybody at once; what it stored is left, and nobody reads it."""
    stored_before(s, made())
    management.delete_team(s.team.id, by=None, now=clock.now())
    assert s.send("GET", f"/v8/artifacts/{s.hash}").status in (401, 403)
