"""The quota at its edges: what fits, what does not, and what clients are told meanwhile."""

from datetime import timedelta

import pytest

from larder import clock
from larder.artifacts import sweep
from larder.artifacts.models import Totals
from larder.artifacts.repository.totals import read_totals
from larder.teams.service import change_state
from tests.conftest import SetOption
from tests.direct_uploads import PREFLIGHT, announce, offer, put_object
from tests.requests import Cloud, Sender

OVER = "remote_caching_over_limit"


def put(send: Sender, hash: str, size_bytes: int) -> str:
    """`stored`, or the code of the refusal."""
    reply = send("PUT", f"/v8/artifacts/{hash}", body=b"x" * size_bytes)
    return "stored" if reply.status == 202 else reply.code


def announced(send: Sender) -> str:
    reply = send("OPTIONS", "/v8/artifacts/new", headers=PREFLIGHT)
    return "offered" if reply.status == 204 else reply.code


def status(send: Sender) -> str:
    return str(send("GET", "/v8/artifacts/status").json["status"])


@pytest.fixture
def hundred(cloud: Cloud) -> Sender:
    """The team may store 100 bytes."""
    change_state(cloud.team.id, quota_bytes=100)
    return cloud.send


def test_the_last_byte_fits_and_nothing_after_it(hundred: Sender) -> None:
    assert put(hundred, "a", 99) == "stored"
    assert (status(hundred), announced(hundred)) == ("enabled", "offered")
    assert put(hundred, "b", 2) == OVER
    assert put(hundred, "b", 1) == "stored"
    assert (status(hundred), announced(hundred)) == ("over_limit", OVER)
    assert put(hundred, "c", 1) == OVER
    assert hundred("GET", "/v8/artifacts/a").status == 200


def test_one_artifact_may_fill_it_and_none_may_be_larger(cloud: Cloud, hundred: Sender) -> None:
    assert put(hundred, "a", 101) == OVER
    assert (status(hundred), read_totals(cloud.team.id)) == ("enabled", Totals())
    assert put(hundred, "a", 100) == "stored"
    assert read_totals(cloud.team.id) == Totals(size_bytes=100, artifacts=1)


def test_a_replacement_needs_room_for_what_it_adds(cloud: Cloud, hundred: Sender) -> None:
    assert put(hundred, "a", 60) == "stored"
    assert put(hundred, "a", 101) == OVER
    assert put(hundred, "a", 99) == "stored"
    assert put(hundred, "a", 10) == "stored"
    assert read_totals(cloud.team.id) == Totals(size_bytes=10, artifacts=1)


def test_what_is_full_takes_nothing_not_even_what_would_be_smaller(hundred: Sender) -> None:
    assert put(hundred, "a", 100) == "stored"
    assert put(hundred, "a", 1) == OVER


@pytest.mark.parametrize(("size_bytes", "seen"), [(40, 200), (41, 404)])
def test_a_direct_upload_is_measured_when_it_has_arrived(
    cloud: Cloud, hundred: Sender, size_bytes: int, seen: int
) -> None:
    assert put(hundred, "a", 60) == "stored"
    key = offer(hundred, "b")
    put_object(key, b"x" * size_bytes)
    announce(key)
    assert hundred("HEAD", "/v8/artifacts/b").status == seen
    assert status(hundred) == ("over_limit" if seen == 200 else "enabled")
    assert read_totals(cloud.team.id).size_bytes == (100 if seen == 200 else 60)


def test_a_direct_upload_that_was_offered_in_time_may_come_too_late(
    cloud: Cloud, hundred: Sender
) -> None:
    key = offer(hundred, "b")
    assert put(hundred, "a", 100) == "stored"
    put_object(key, b"x")
    announce(key)
    assert hundred("HEAD", "/v8/artifacts/b").status == 404
    assert read_totals(cloud.team.id) == Totals(size_bytes=100, artifacts=1)


def test_what_expires_makes_room(cloud: Cloud, hundred: Sender) -> None:
    assert put(hundred, "a", 100) == "stored"
    sweep.sweep(now=clock.now() + timedelta(days=31))
    assert status(hundred) == "enabled"
    assert put(hundred, "b", 100) == "stored"


def test_a_quota_that_is_lowered_below_what_is_stored_deletes_nothing(
    cloud: Cloud, hundred: Sender
) -> None:
    assert put(hundred, "a", 50) == "stored"
    change_state(cloud.team.id, quota_bytes=20)
    assert (status(hundred), put(hundred, "b", 1)) == ("over_limit", OVER)
    assert len(hundred("GET", "/v8/artifacts/a").body) == 50
    change_state(cloud.team.id, quota_bytes=51)
    assert put(hundred, "b", 1) == "stored"


@pytest.mark.parametrize(
    ("of_the_deployment", "of_the_team", "fits", "does_not"),
    [(0, None, 5000, None), (100, None, 100, 101), (100, 40, 40, 41), (100, 300, 300, 301), (0, 70, 70, 71)],
)  # fmt: skip
def test_a_quota_of_ones_own_stands_above_the_deployments_whichever_is_larger(
    cloud: Cloud,
    option: SetOption,
    of_the_deployment: int,
    of_the_team: int | None,
    fits: int,
    does_not: int | None,
) -> None:
    option("default_quota_bytes", of_the_deployment)
    if of_the_team is not None:
        change_state(cloud.team.id, quota_bytes=of_the_team)
    if does_not is not None:
        assert put(cloud.send, "a", does_not) == OVER
    assert put(cloud.send, "a", fits) == "stored"


def test_who_goes_back_to_the_deployments_quota_has_that_at_once(
    cloud: Cloud, hundred: Sender, option: SetOption
) -> None:
    option("default_quota_bytes", 20)
    assert put(hundred, "a", 30) == "stored"
    change_state(cloud.team.id, default_quota=True)
    assert (status(hundred), put(hundred, "b", 1)) == ("over_limit", OVER)


def test_a_person_and_their_team_have_a_quota_each(
    cloud: Cloud, hundred: Sender, personal: Sender, option: SetOption
) -> None:
    option("default_quota_bytes", 50)
    assert put(hundred, "a", 100) == "stored"
    assert put(personal, "a", 51) == OVER
    assert put(personal, "a", 50) == "stored"
    change_state(cloud.user.id, quota_bytes=200)
    assert put(personal, "b", 150) == "stored"
    assert (status(hundred), status(personal)) == ("over_limit", "over_limit")
