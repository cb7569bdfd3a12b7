"""Temporary botocore hooks on the layer's clients."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from larder import aws
from larder.settings import settings


@contextmanager
def hooked(event: str, hook: Callable[..., Any], *clients: Any) -> Iterator[None]:
    """Call `hook` for each such event of these clients, before other hooks of exactly this event.

    Only boto3's clients have hooks, so the layer uses them meanwhile.
    """
    with registered(event, hook, *clients), by_boto3():
        yield


@contextmanager
def registered(event: str, hook: Callable[..., Any], *clients: Any) -> Iterator[None]:
    """The same without a change of the client that the layer uses."""
    for client in clients:
        client.meta.events.register_first(event, hook)
    try:
        yield
    finally:
        for client in clients:
            client.meta.events.unregister(event, hook)


@contextmanager
def by_boto3() -> Iterator[None]:
    """Let the layer use boto3 for all calls."""
    before = os.environ.get(_SWITCH)
    _choose("boto3")
    try:
        yield
    finally:
        _choose(before)


def _choose(client: str | None) -> None:
    if client is None:
        os.environ.pop(_SWITCH, None)
    else:
        os.environ[_SWITCH] = client
    settings.cache_clear()
    aws._by_wire.cache_clear()


_SWITCH = "LARDER_AWS_CLIENT"
