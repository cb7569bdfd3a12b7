"""What a request to the cache does with its key: a key without allowance and rate limit is only read, and its use is
recorded once a minute. Any other key is verified and counted in one write."""

from datetime import timedelta

import pytest

from larder import clock
from larder.api_keys import repository
from larder.api_keys.keys import create_key, revoke_key
from larder.api_keys.models import ApiKey, RateLimit
from larder.api_keys.principals import Principal
from larder.api_keys.properties import KeyChanges, NewKey
from larder.api_keys.self_service import update_key
from larder.instance import restart
from tests.conftest import Clock
from tests.faults import refusing, unreachable
from tests.proofs.aws_calls import Calls, counted
from tests.requests import Cloud, Reply, Sender

STATUS = "/v8/artifacts/status"
THROTTLED = {"__type": "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException"}
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


def stored(key: ApiKey) -> ApiKey:
    found = repository.get(key.key_hash)
    assert found is not None
    return found


def status(send: Sender) -> tuple[Reply, Calls]:
    with counted() as calls:
        reply = send("GET", STATUS)
    return reply, calls


def change(cloud: Cloud, changes: KeyChanges) -> None:
    update_key(Principal(credential=cloud.key), cloud.key.id, changes, now=clock.now())


def limited(cloud: Cloud, *, remaining: int | None = None, most: int | None = None) -> Sender:
    limit = None
    if most is not None:
        limit = RateLimit(enabled=True, window_ms=60_000, max_requests=most)
    new = NewKey(user_id=cloud.user.id, team_id=cloud.team.id, remaining=remaining, rate_limit=limit)
    return Sender(create_key(new, now=clock.now())[1])


def test_a_key_is_read_and_its_use_recorded_once_a_minute(cloud: Cloud, later: Clock) -> None:
    restart()
    first = clock.now()
    assert status(cloud.send)[1].steps == [["GetItem"] * 2, ["BatchGetItem", "UpdateItem"]]
    assert stored(cloud.key).last_request == first
    later.pass_(59 * SECOND)
    assert status(cloud.send)[1].steps == [["BatchGetItem"]]
    assert stored(cloud.key).last_request == first
    second = later.pass_(SECOND)
    assert status(cloud.send)[1].steps == [["BatchGetItem", "UpdateItem"]]
    assert stored(cloud.key).last_request == second


def test_a_new_instance_does_not_record_a_use_again_within_the_minute(cloud: Cloud, later: Clock) -> None:
    first = clock.now()
    status(cloud.send)
    later.pass_(59 * SECOND)
    restart()
    assert status(cloud.send)[1].steps == [["GetItem"] * 2, ["BatchGetItem"]]
    assert stored(cloud.key).last_request == first


def test_a_throttled_record_is_tried_once_a_minute_and_fails_no_request(cloud: Cloud, later: Clock) -> None:
    status(cloud.send)
    later.pass_(MINUTE)
    with refusing("dynamodb", "UpdateItem", 400, THROTTLED) as tries:
        for _ in range(3):
            assert status(cloud.send)[0].status == 200
            later.pass_(SECOND)
    assert len(tries) == 1
    second = later.pass_(MINUTE)
    assert status(cloud.send)[0].status == 200
    assert stored(cloud.key).last_request == second


@pytest.mark.parametrize("code", ["InternalServerError", "TransactionConflictException"])
def test_a_failed_record_is_not_retried(code: str, cloud: Cloud, later: Clock) -> None:
    body = {"__type": f"com.amazonaws.dynamodb.v20120810#{code}"}
    with refusing("dynamodb", "UpdateItem", 500 if "Error" in code else 400, body) as tries:
        assert status(cloud.send)[0].status == 200
    assert len(tries) == 1


def test_a_refused_record_fails_no_request(cloud: Cloud) -> None:
    invalid = {"__type": "com.amazonaws.dynamodb.v20120810#ValidationException"}
    with refusing("dynamodb", "UpdateItem", 400, invalid) as tries:
        assert status(cloud.send)[0].status == 200
    assert len(tries) == 1


def test_an_unreachable_table_of_keys_fails_only_the_record(cloud: Cloud, later: Clock) -> None:
    with unreachable("dynamodb", "UpdateItem"):
        assert status(cloud.send)[0].status == 200


@pytest.mark.parametrize(("heat", "read"), [("cold", "GetItem"), ("warm", "BatchGetItem")])
def test_503_if_the_key_cannot_be_read(heat: str, read: str, cloud: Cloud) -> None:
    if heat == "warm":
        status(cloud.send)
    with unreachable("dynamodb", read):
        assert status(cloud.send)[0].status == 503


def test_a_deleted_key_is_refused_at_the_next_request(cloud: Cloud) -> None:
    assert status(cloud.send)[0].status == 200
    assert revoke_key(cloud.key)
    assert status(cloud.send)[0].status == 401
    assert repository.get(cloud.key.key_hash) is None


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (KeyChanges(enabled=False), (401, "unauthorized")),
        (KeyChanges(expires_in_s=86_400), (401, "unauthorized")),
        (KeyChanges(permissions={"artifacts": ("write",)}), (403, "missing_permission")),
    ],
    ids=["disabled", "expired", "without the permission"],
)
def test_a_changed_key_is_refused_at_the_next_request_and_no_use_is_recorded(
    changes: KeyChanges, expected: tuple[int, str], cloud: Cloud, later: Clock
) -> None:
    first = clock.now()
    assert cloud.send("HEAD", "/v8/artifacts/absent").status == 404
    change(cloud, changes)
    later.pass_(timedelta(days=1))
    reply = cloud.send("GET", "/v8/artifacts/absent")
    assert (reply.status, reply.code) == expected
    assert stored(cloud.key).last_request == first


def test_an_allowance_is_counted_exactly(cloud: Cloud) -> None:
    send = limited(cloud, remaining=3)
    statuses = []
    for _ in range(5):
        statuses.append(send("GET", STATUS).status)
        restart()
    assert statuses == [200, 200, 200, 401, 401]


def test_a_rate_limit_is_counted_exactly(cloud: Cloud, later: Clock) -> None:
    send = limited(cloud, most=3)
    assert [send("GET", STATUS).status for _ in range(4)] == [200, 200, 200, 429]
    later.pass_(MINUTE)
    assert send("GET", STATUS).status == 200


@pytest.mark.parametrize("slug", [None, "acme"])
def test_a_counted_key_costs_two_round_trips_in_a_new_instance_and_one_later(slug: str | None, cloud: Cloud) -> None:
    send = Sender(limited(cloud, remaining=9).token, slug=slug)
    restart()
    cold = status(send)[1].steps
    assert cold[1:] == [["BatchGetItem", "UpdateItem"]]
    assert status(send)[1].steps == [["BatchGetItem", "UpdateItem"]]


def test_limits_that_are_set_on_a_used_key_count_from_the_next_request(cloud: Cloud) -> None:
    assert status(cloud.send)[0].status == 200
    change(cloud, KeyChanges(remaining=2))
    assert [cloud.send("GET", STATUS).status for _ in range(3)] == [200, 200, 401]


def test_a_key_is_only_read_again_after_its_limits_were_removed(cloud: Cloud) -> None:
    change(cloud, KeyChanges(remaining=2))
    assert status(cloud.send)[0].status == 200
    change(cloud, KeyChanges(remaining=None))
    assert all(status(cloud.send)[0].status == 200 for _ in range(4))
    assert status(cloud.send)[1].steps == [["BatchGetItem"]]


def test_a_request_for_another_team_takes_a_use_of_a_counted_key(cloud: Cloud) -> None:
    send = limited(cloud, remaining=2)
    for _ in range(2):
        reply = Sender(send.token, team_id="team_other")("GET", STATUS)
        assert (reply.status, reply.code) == (403, "not_a_team_member")
    assert send("GET", STATUS).status == 401
