"""How long a request waits for a store without a reply. tests/proofs/test_faults.py waits for real stores."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest
from botocore.exceptions import ReadTimeoutError

from larder import aws
from larder.deadline import KEPT_BACK_S, LAST_CALL_S, SHORT_S, last_call, request_deadline, short_deadline
from larder.errors import TryAgain
from larder.tables import ARTIFACTS
from tests.default_template import template
from tests.hooks import hooked

pytestmark = pytest.mark.usefixtures("aws_in_memory")


def read() -> object:
    return ARTIFACTS.get("team_a", "abc")


@contextmanager
def silent(takes_s: float) -> Iterator[list[float]]:
    """Make each attempt to read time out, on a clock on which only that takes time. Yields when they began."""
    began = time.monotonic()
    tries: list[float] = []

    def now() -> float:
        return began + takes_s * len(tries)

    def wait(**_: Any) -> None:
        tries.append(now())
        raise ReadTimeoutError(endpoint_url="https://aws")

    with hooked("before-send.dynamodb.GetItem", wait, aws.dynamodb()), patch("time.monotonic", now):
        yield tries


def in_time(left_s: float) -> Any:
    return request_deadline(round((KEPT_BACK_S + left_s) * 1000))


def test_calls_are_made_while_there_is_time() -> None:
    with in_time(10):
        assert read() is None


def test_no_call_starts_when_the_time_is_over() -> None:
    with in_time(0), silent(0) as tries, pytest.raises(TryAgain):
        read()
    assert tries == []


def test_no_retry_starts_when_the_time_is_over() -> None:
    with silent(0.05) as tries, in_time(0.02), pytest.raises(TryAgain):
        read()
    assert len(tries) == 1


def test_at_most_three_attempts_while_there_is_time() -> None:
    with in_time(10), silent(0) as tries, pytest.raises(TryAgain):
        read()
    assert len(tries) == 3


def test_the_next_request_has_its_own_time() -> None:
    with in_time(0):
        pass
    assert read() is None


def test_a_short_limit_does_not_reduce_the_remaining_time() -> None:
    with in_time(10):
        with silent(SHORT_S + 0.05) as tries, short_deadline(), pytest.raises(TryAgain):
            read()
        assert len(tries) == 1
        assert read() is None


def test_an_attempt_that_starts_late_ends_before_the_function() -> None:
    for client in (aws.dynamodb(), aws.s3(), aws.lambda_(), aws.secrets_manager()):
        config: Any = client.meta.config
        assert config.connect_timeout + config.read_timeout < KEPT_BACK_S
    routes = template().routes
    assert {route.function.timeout_s for route in routes} == {25}


@pytest.mark.parametrize(("left_s", "tries"), [(LAST_CALL_S + 0.1, 1), (LAST_CALL_S - 0.1, 0)])
def test_a_last_call_gets_one_try_if_the_function_has_the_time(left_s: float, tries: int) -> None:
    with in_time(left_s - KEPT_BACK_S):
        with silent(0) as made, last_call(), pytest.raises(TryAgain):
            read()
        with silent(0) as later, pytest.raises(TryAgain):
            read()
    assert (len(made), later) == (tries, [])
