"""Requests that overlap must do what they do one after the other, in one of the orders. A model says what that is."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from hypothesis import Phase, settings

from tests.requests import Reply

OK, REFUSED, EITHER, BUSY = "ok", "refused", "ok or refused", "try again"
"""A model says REFUSED where any refusal is right, and EITHER where a refusal or OK is. BUSY is the reply 503: it may
come to requests that overlap, and changes nothing."""

Outcome = str | tuple[Any, ...]


@dataclass(frozen=True)
class Request:
    """A request to the handlers, and what it does in the model."""

    name: str
    given: dict[str, Any]
    send: Callable[[], Outcome]
    apply: Callable[[Any], Outcome]

    def __repr__(self) -> str:
        return f"{self.name}({self.given})"


def outcome(reply: Reply) -> Outcome:
    """The code of a refusal."""
    if reply.status in (200, 204):
        return OK
    if reply.status == 503:
        return BUSY
    sent = reply.json
    return str(sent["code"] if "code" in sent else sent["error"]["code"])


def either_order(
    model: Any,
    requests: Sequence[Request],
    got: Sequence[Outcome],
    *,
    starts: Callable[[Any], Iterable[Any]] = lambda model: (model,),
) -> Iterator[Any]:
    """Each model after the requests, in any order, whose replies are those that the product gave.

    `starts` are the models in place of which a request may find another, such as one without what has expired.
    """
    for order in permutations(zip(requests, got, strict=True)):
        possible = [model]
        for request, reply in order:
            following = []
            for start in (each for before in possible for each in starts(before)):
                changed = deepcopy(start)
                if reply == BUSY and len(requests) > 1:
                    following.append(changed)
                    continue
                expected = request.apply(changed)
                is_refused = expected in (REFUSED, EITHER) and isinstance(reply, str) and reply != OK
                if reply == expected or is_refused or (expected == EITHER and reply == OK):
                    following.append(changed)
            possible = following
        yield from possible


def quiet_settings(*, examples: int, steps: int) -> settings:
    """`MACHINE_ROUNDS` multiplies the examples."""
    rounds = int(os.environ.get("MACHINE_ROUNDS") or 1)
    return settings(
        max_examples=examples * rounds,
        stateful_step_count=steps,
        derandomize=True,
        database=None,
        print_blob=True,
        deadline=None,
        # The steps of a failure are few. To find fewer takes minutes.
        phases=(Phase.generate,),
    )
