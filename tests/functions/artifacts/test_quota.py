"""The quota at its limits: which uploads fit, and the status that clients get."""

from datetime import timedelta

import pytest

from larder import clock
from larder.artifacts import sweep
from larder.artifacts.models import Totals
from larder.artifacts.repository.totals import read_totals
from larder.teams.state import change_state, read_state
from tests.addresses import prove_address
from tests.conftest import SetOption
from tests.direct_uploads import PREFLIGHT, announce, offer, put_object
from tests.requests import Cloud, Sender

OVER = "remote_caching_over_limit"

pytestmark = pytest.mark.usefixtures("refusing")


def put(send: Sender, hash: str, size_bytes: int) -> str:
    """Return `stored` or the code of the refusal."""
    reply = send("PUT", f"/v8/artifacts/{hash}", body=b"x" * size_bytes)
    return "stored" if reply.status == 202 else reply.code


def announced(send: Sender) -> str:
    reply = send("OPTIONS", "/v8/artifacts/new", headers=PREFLIGHT)
    return "offered" if reply.status == 204 else reply.code


def status(send: Sender) -> str:
    return str(send("GET", "/v8/artifacts/status").json["status"])


@pytest.fixture
def hundred(cloud: Cloud) -> Sender:
    """A team with a quota of 100 bytes."""
    change_state(cloud.team.id, quota_bytes=100)
    return cloud.send


def test_the_quota_can_be_filled_to_the_last_byte(hundred: Sender) -> None:
    assert put(hundred, "a", 99) == "stored"
    assert (status(hundred), announced(hundred)) == ("enabled", "offered")
    assert put(hundred, "b", 2) == OVER
    assert put(hundred, "b", 1) == "stored"
    assert (status(hundred), announced(hundred)) == ("over_limit", OVER)
    assert put(hundred, "c", 1) == OVER
    assert hundred("GET", "/v8/artifacts/a").status == 200


def test_one_artifact_can_fill_the_quota_but_not_exceed_it(cloud: Cloud, hundred: Sender) -> None:
    assert put(hundred, "a", 101) == OVER
    assert (status(hundred), read_totals(cloud.team.id)) == ("enabled", Totals())
    assert put(hundred, "a", 100) == "stored"
    assert read_totals(cloud.team.id) == Totals(size_bytes=100, artifacts=1)


def test_a_replacement_needs_space_only_for_its_growth(cloud: Cloud, hundred: Sender) -> None:
    assert put(hundred, "a", 60) == "stored"
    assert put(hundred, "a", 101) == OVER
    assert put(hundred, "a", 99) == "stored"
    assert put(hundred, "a", 10) == "stored"
    assert read_totals(cloud.team.id) == Totals(size_bytes=10, artifacts=1)


def test_a_full_quota_refuses_even_a_smaller_replacement(hundred: Sender) -> None:
    assert put(hundred, "a", 100) == "stored"
    assert put(hundred, "a", 1) == OVER


@pytest.mark.parametrize(("size_bytes", "seen"), [(40, 200), (41, 404)])
def test_a_direct_upload_is_checked_when_it_arrives(cloud: Cloud, hundred: Sender, size_bytes: int, seen: int) -> None:
    assert put(hundred, "a", 60) == "stored"
    key = offer(hundred, "b")
    put_object(key, b"x" * size_bytes)
    announce(key)
    assert hundred("HEAD", "/v8/artifacts/b").status == seen
    assert status(hundred) == ("over_limit" if seen == 200 else "enabled")
    assert read_totals(cloud.team.id).size_bytes == (100 if seen == 200 else 60)


def test_a_direct_upload_can_be_over_the_quota_on_arrival(cloud: Cloud, hundred: Sender) -> None:
    key = offer(hundred, "b")
    assert put(hundred, "a", 100) == "stored"
    put_object(key, b"x")
    announce(key)
    assert hundred("HEAD", "/v8/artifacts/b").status == 404
    assert read_totals(cloud.team.id) == Totals(size_bytes=100, artifacts=1)


def test_expired_artifacts_free_space(cloud: Cloud, hundred: Sender) -> None:
    assert put(hundred, "a", 100) == "stored"
    sweep.sweep(now=clock.now() + timedelta(days=31))
    assert status(hundred) == "enabled"
    assert put(hundred, "b", 100) == "stored"


def test_lowering_the_quota_deletes_nothing(cloud: Cloud, hundred: Sender) -> None:
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
def test_a_teams_own_quota_overrides_the_default_whichever_is_larger(
    cloud: Cloud, option: SetOption, of_the_deployment: int, of_the_team: int | None, fits: int, does_not: int | None
) -> None:
    option("default_quota_bytes", of_the_deployment)
    if of_the_team is not None:
        change_state(cloud.team.id, quota_bytes=of_the_team)
    if does_not is not None:
        assert put(cloud.send, "a", does_not) == OVER
    assert put(cloud.send, "a", fits) == "stored"


def test_returning_to_the_default_quota_takes_effect_at_once(cloud: Cloud, hundred: Sender, option: SetOption) -> None:
    option("default_quota_bytes", 20)
    assert put(hundred, "a", 30) == "stored"
    change_state(cloud.team.id, default_quota=True)
    assert (status(hundred), put(hundred, "b", 1)) == ("over_limit", OVER)


def test_a_user_and_their_team_have_separate_quotas(
    cloud: Cloud, hundred: Sender, personal: Sender, option: SetOption
) -> None:
    option("personal_quota_bytes", 50)
    assert put(hundred, "a", 100) == "stored"
    assert put(personal, "a", 51) == OVER
    assert put(personal, "a", 50) == "stored"
    change_state(cloud.user.id, quota_bytes=200)
    assert put(personal, "b", 150) == "stored"
    assert (status(hundred), status(personal)) == ("over_limit", "over_limit")


def test_the_defaults_of_a_deployment_are_100_gb_for_a_team_and_5_gb_for_a_user(cloud: Cloud) -> None:
    assert read_state(cloud.team.id).quota_bytes == 100 * 10**9
    prove_address(cloud.user)
    assert read_state(cloud.user.id).quota_bytes == 5 * 10**9


def test_no_personal_quota_is_no_limit(cloud: Cloud, personal: Sender, option: SetOption) -> None:
    option("default_quota_bytes", 50)
    option("personal_quota_bytes", 0)
    prove_address(cloud.user)
    assert read_state(cloud.user.id).quota_bytes is None
    assert put(personal, "a", 5000) == "stored"


def test_a_user_has_less_space_before_their_address_is_proven(
    cloud: Cloud, personal: Sender, option: SetOption
) -> None:
    option("personal_quota_bytes", 100)
    option("unverified_quota_bytes", 30)
    assert (put(personal, "a", 31), put(personal, "a", 30)) == (OVER, "stored")
    prove_address(cloud.user)
    assert (put(personal, "b", 70), put(personal, "c", 1)) == ("stored", OVER)


def test_a_direct_upload_of_an_unproven_user_is_checked_when_it_arrives(
    cloud: Cloud, personal: Sender, option: SetOption
) -> None:
    option("unverified_quota_bytes", 30)
    for hash, size_bytes in (("large", 31), ("small", 30)):
        key = offer(personal, hash)
        put_object(key, b"x" * size_bytes)
        announce(key)
    assert read_totals(cloud.user.id) == Totals(size_bytes=30, artifacts=1)


@pytest.mark.parametrize("over_quota", ["evict", "refuse"])
def test_an_unproven_user_stores_nothing_if_the_option_is_0(
    cloud: Cloud, personal: Sender, option: SetOption, over_quota: str
) -> None:
    option("over_quota", over_quota)
    option("unverified_quota_bytes", 0)
    assert (put(personal, "a", 1), announced(personal)) == ("email_not_proven",) * 2
    assert personal("GET", "/v8/artifacts/a").status == 404
    assert put(cloud.send, "a", 1) == "stored"
    prove_address(cloud.user)
    assert put(personal, "a", 1) == "stored"


def test_the_lower_option_and_a_users_own_quota_apply_to_an_unproven_user(cloud: Cloud, option: SetOption) -> None:
    assert read_state(cloud.user.id).quota_bytes == 10**9
    option("personal_quota_bytes", 30)
    assert read_state(cloud.user.id).quota_bytes == 30
    assert change_state(cloud.user.id, quota_bytes=200).quota_bytes == 200
    option("personal_quota_bytes", 0)
    assert change_state(cloud.user.id, default_quota=True).quota_bytes == 10**9
