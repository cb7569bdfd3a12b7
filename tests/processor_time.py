"""Processor time that depends on the code, and little on the machine.

Two machines differ by a factor of two, and so does one with itself while a neighbour shares its cores. So the time is
compared with that of known work, right before and after, in the same process.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import process_time

_DOCUMENT = json.dumps([{"id": str(number), "values": [number] * 9} for number in range(10_000)])
_KNOWN_WORK_S = 0.015
"""What `_known_work_s` returns on the machine that the tests' bounds are written for."""


def _known_work_s() -> float:
    """Parse and loop, as the functions do most of the time."""
    began = process_time()
    totals = {each["id"]: sum(each["values"]) for each in json.loads(_DOCUMENT)}
    sum(len(id) + total for id, total in totals.items())
    return process_time() - began


class Spent:
    """Processor time in seconds of the machine that the tests' bounds are written for."""

    s: float


@contextmanager
def processor_time() -> Iterator[Spent]:
    """Measure the body. Its time is known afterwards."""
    spent = Spent()
    known, began = _known_work_s(), process_time()
    yield spent
    took = process_time() - began
    spent.s = took * 2 * _KNOWN_WORK_S / (known + _known_work_s())


def fastest_s(call: Callable[[], object], *, enough: float, attempts: int = 5) -> float:
    """The processor time of the fastest of several calls. The first one that takes `enough` or less ends them."""
    spent: list[float] = []
    while not spent or (min(spent) > enough and len(spent) < attempts):
        with processor_time() as one:
            call()
        spent.append(one.s)
    return min(spent)
