"""The HTTP rate limit is exact for parallel requests, on the local DynamoDB server as in test_key_exactness."""

import secrets
from datetime import timedelta

import pytest

from larder import clock
from larder.errors import TooManyRequests
from larder.rate_limits.models import Limit
from larder.rate_limits.service import take
from larder.tables import RATE_LIMITS
from tests.proofs.aws_calls import counted
from tests.proofs.overlapping import Overlap, all_at_once, every_overlap, most_under_way

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("on_the_local_server")]

AT_ONCE = 100


@pytest.mark.parametrize("most", [1, 3, 99, 100, 1000])
@every_overlap
def test_of_100_parallel_requests_only_the_limit_passes(most: int, overlap: Overlap) -> None:
    what, limit, now = secrets.token_hex(8), Limit(most=most, window_s=3600), clock.now()

    def ask() -> bool:
        try:
            take(what, limit, now=now)
        except TooManyRequests:
            return False
        return True

    with counted() as calls:
        done = all_at_once([ask] * AT_ONCE, overlap)
    assert most_under_way(done) >= (AT_ONCE if overlap.held else 4), "they did not overlap"
    assert sum(one.answer for one in done) == min(most, AT_ONCE)
    assert len(calls.made) <= AT_ONCE
    stored = RATE_LIMITS.get(what, limit.window_at(now))
    assert stored is not None
    assert stored["request_count"] == min(most, AT_ONCE)
    take(what, limit, now=now + timedelta(seconds=3600))
