"""Errors as JSON, in the shape of each API. Functions that start without the resolver use it, too."""

from typing import Any

from larder.errors import LarderError, TooManyRequests


def cache_error(error: LarderError) -> dict[str, Any]:
    """The build client parses the nested shape, its older documents say flat: both are there."""
    flat = {"code": error.code, "message": error.message}
    return {"error": dict(flat), **flat}


def auth_error(error: LarderError) -> dict[str, Any]:
    """The flat shape that the Better Auth client parses; its codes are in upper case."""
    body = {"message": error.message}
    if not isinstance(error, TooManyRequests):
        body["code"] = error.code.upper()
    return body
