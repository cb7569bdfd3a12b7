"""The interface of a pool that runs the functions, for the gateway, event delivery and schedules."""

from __future__ import annotations

from typing import Protocol

from local.template import Function


class FunctionFailed(Exception):
    """A function raised an error, took too long, or exited. The message says which."""


class FunctionPool(Protocol):
    """The functions, ready to be invoked: workers/pool.py and lambda_runtime/pool.py."""

    async def invoke(
        self, function: Function, event: bytes, request_id: str, binary_body: bytes = b""
    ) -> bytes:
        """The function's reply (JSON) to an event (JSON). Raises FunctionFailed.

        The function finds `binary_body`, if there is one, as the event's `body` in base64.
        """

    async def stop(self) -> None:
        """End the processes that run the functions. Running invocations are cut off."""
