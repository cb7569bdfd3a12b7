"""The stores of the tests keep no copies of their data, so that they have room for thousands of hostile requests."""

import gc
import os

import pytest
from moto.dynamodb.models.dynamo_type import Item

from larder import clock
from larder.teams.teams import create_team
from tests.requests import Cloud

pytestmark = pytest.mark.skipif("ENGINE" in os.environ, reason="moto holds the tables only where no other engine does")


@pytest.mark.slow
def test_transactions_leave_no_copies_of_their_tables(cloud: Cloud) -> None:
    # The stores are filled at the first call.
    create_team("First", "first", owner_user_id=cloud.user.id, now=clock.now())
    before = items_held()
    assert before > 0
    for number in range(10):
        create_team("More", f"more-{number}", owner_user_id=cloud.user.id, now=clock.now())
    assert items_held() - before < 10 * before


def items_held() -> int:
    gc.collect()
    return sum(type(held) is Item for held in gc.get_objects())
