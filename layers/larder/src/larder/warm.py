"""Warm calls keep instances of the functions of builds, so that the first build after a break waits for no start.

A warm call is no request: the function waits, and answers without reading anything.
"""

import json
import time
from collections.abc import Mapping
from typing import Any

from larder import aws
from larder.deadline import one_try
from larder.errors import TryAgain

_WAIT_MS = "warmCallMs"
"""The key of a warm call. API Gateway names the keys of its events, so no client can send it."""


def is_warm_call(event: Mapping[str, Any]) -> bool:
    return _WAIT_MS in event


def answer(event: Mapping[str, Any]) -> dict[str, Any]:
    """Wait until the other calls have begun, so that each has an instance of its own."""
    time.sleep(event[_WAIT_MS] / 1000)
    return {}


def keep_warm(instances: Mapping[str, int]) -> int:
    """Call each function so many times at once, one function after the other. Returns how many calls failed.

    A call that fails is not repeated: the next run is minutes away, and builds may need what refused it.
    """
    # Imported here, because every function with a route imports this module.
    from concurrent.futures import ThreadPoolExecutor

    failed = 0
    with ThreadPoolExecutor(max(instances.values())) as threads:
        # Otherwise connections would open during the first calls, which takes longer than they wait.
        connecting = [threads.submit(aws.connect, "lambda") for _ in range(max(instances.values()))]
        for connected in connecting:
            connected.result()
        for function, times in instances.items():
            failed += sum(threads.map(_fails, [function] * times, [_wait_ms(times)] * times))
    # They would have ended when the next run needs them.
    aws.lambda_().close()
    return failed


def _wait_ms(calls: int) -> int:
    """Each call takes half a millisecond of CPU to send, and a function has less than a third of a processor."""
    return 40 + 2 * calls


def _fails(function: str, wait_ms: int) -> bool:
    payload = json.dumps({_WAIT_MS: wait_ms}).encode()
    try:
        with one_try():
            aws.lambda_().invoke(
                FunctionName=function, InvocationType="RequestResponse", Payload=payload
            )
    except (TryAgain, aws.ClientError):
        return True
    return False
