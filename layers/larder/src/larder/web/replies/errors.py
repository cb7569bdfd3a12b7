"""Errors as JSON, in the shape of each API. Functions that start without the resolver use it, too."""

from typing import NotRequired, TypedDict

from larder.errors import LarderError, TooManyRequests


class ErrorDetailJson(TypedDict):
    code: str
    message: str


class ErrorJson(ErrorDetailJson):
    """An error. Build clients read the nested part."""

    error: ErrorDetailJson


class AuthErrorJson(TypedDict):
    """An error of `/api/auth`. `code` is missing if one address sent too many requests to one path."""

    message: str
    code: NotRequired[str]


def cache_error(error: LarderError) -> ErrorJson:
    """The build client parses the nested shape, and other clients the flat one."""
    detail: ErrorDetailJson = {"code": error.code, "message": error.message}
    return {"error": detail, **detail}


def auth_error(error: LarderError) -> AuthErrorJson:
    """The flat shape that the Better Auth client parses; its codes are in upper case."""
    body: AuthErrorJson = {"message": error.message}
    if not isinstance(error, TooManyRequests):
        body["code"] = error.code.upper()
    return body
