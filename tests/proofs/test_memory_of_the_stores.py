"""The stores of the tests keep no copies of their data, so that they have room for thousands of hostile requests."""

import gc
import os

import pytest
from moto.dynamodb.models.dynamo_type import Item
from moto.s3.models import FakeKey

from larder import clock
from larder.teams.teams import create_team
from tests.proofs.conftest import ROUND, BeginRounds
from tests.proofs.stored import object_keys
from tests.requests import Cloud

pytestmark = pytest.mark.skipif("ENGINE" in os.environ, reason="moto holds the tables only where no other engine does")


def test_transactions_leave_no_copies_of_their_tables(cloud: Cloud) -> None:
    # The stores are filled at the first call.
    create_team("First", "first", owner_user_id=cloud.user.id, now=clock.now())
    before = items_held()
    assert before > 0
    for number in range(10):
        create_team("More", f"more-{number}", owner_user_id=cloud.user.id, now=clock.now())
    assert items_held() - before < 10 * before


def test_a_round_resets_the_stores(cloud: Cloud, begin_rounds: BeginRounds) -> None:
    checked: list[int] = []
    rounds = begin_rounds(lambda: checked.append(len(list(object_keys()))))
    for number in range(2 * ROUND):
        assert cloud.send("PUT", f"/v8/artifacts/{number:016x}", body=b"stored").status == 202
        rounds.count()
    assert checked == [ROUND, ROUND]
    assert list(object_keys()) == []
    assert len(FakeKey.instances_tracked) == 0  # type: ignore[attr-defined]


def items_held() -> int:
    gc.collect()
    return sum(type(held) is Item for held in gc.get_objects())
