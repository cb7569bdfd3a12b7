"""Hooks of botocore on the layer's clients, for the time of a `with`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def hooked(event: str, hook: Callable[..., Any], *clients: Any) -> Iterator[None]:
    """Within, each such event of these clients calls `hook`, before what else waits for exactly this event."""
    for client in clients:
        client.meta.events.register_first(event, hook)
    try:
        yield
    finally:
        for client in clients:
            client.meta.events.unregister(event, hook)
