"""Temporary botocore hooks on the layer's clients."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def hooked(event: str, hook: Callable[..., Any], *clients: Any) -> Iterator[None]:
    """Call `hook` for each such event of these clients, before other hooks of exactly this event."""
    for client in clients:
        client.meta.events.register_first(event, hook)
    try:
        yield
    finally:
        for client in clients:
            client.meta.events.unregister(event, hook)
