"""The table of errors: each has a status, a code, and a message with the names of the API."""

import pytest

from larder import errors
from larder.errors import InvalidValue, LarderError
from larder.web import errors as web_errors
from larder.web.replies.errors import REPLIES, better_auth_error, code_of, headers_of, vercel_error


def subclasses(error: type[LarderError]) -> set[type[LarderError]]:
    return {subclass for direct in error.__subclasses__() for subclass in {direct, *subclasses(direct)}}


def test_every_error_is_in_the_table() -> None:
    known = {
        var
        for module in (errors, web_errors)
        for var in vars(module).values()
        if isinstance(var, type) and issubclass(var, LarderError)
    }
    assert REPLIES.keys() == known - {LarderError}
    # Tests define some of their own.
    ours = {subclass for subclass in subclasses(LarderError) if subclass.__module__.startswith("larder")}
    assert REPLIES.keys() == ours


def test_one_error_has_the_code_that_makes_some_clients_send_their_token_elsewhere() -> None:
    """Only a token that everyone may have gets it, and only newer clients."""
    assert [error for error, reply in REPLIES.items() if reply.code == "forbidden"] == [errors.UploadsForbidden]


@pytest.mark.parametrize(
    ("error", "headers"),
    [
        (errors.Unauthenticated(), {"WWW-Authenticate": "Bearer"}),
        (errors.NotSignedIn(), {}),
        (errors.RateLimited(1001), {"Retry-After": "2"}),
        (errors.TooManyRequests(7), {"X-Retry-After": "7", "Retry-After": "7"}),
        (errors.Contention(), {"Retry-After": "2"}),
        (web_errors.MethodNotAllowed(["GET", "PUT"]), {"Allow": "GET, PUT"}),
    ],
)
def test_headers_have_the_values_of_the_error(error: LarderError, headers: dict[str, str]) -> None:
    assert headers_of(error) == headers


@pytest.mark.parametrize(
    ("error", "code", "message", "in_auth"),
    [
        (
            InvalidValue("user_id", "is unknown"),
            "bad_request",
            "userId: is unknown",
            {"code": "VALIDATION_ERROR", "message": "[body.userId] is unknown"},
        ),
        (
            errors.RemainingRequired(),
            "bad_request",
            "remaining: is required with refillAmount and refillInterval",
            {
                "code": "VALIDATION_ERROR",
                "message": "[body.remaining] is required with refillAmount and refillInterval",
            },
        ),
        (
            errors.ExpiresInTooSmall("expires_in", "is too short"),
            "expires_in_is_too_small",
            "expiresIn: is too short",
            {"code": "EXPIRES_IN_IS_TOO_SMALL", "message": "expiresIn: is too short"},
        ),
        (
            web_errors.InvalidRequest("user_id", "is unknown"),
            "bad_request",
            "user_id: is unknown",
            {"code": "BAD_REQUEST", "message": "user_id: is unknown"},
        ),
        (
            errors.EmailUnchanged(),
            "email_is_the_same",
            "newEmail is the user's current address.",
            {"code": "EMAIL_IS_THE_SAME", "message": "newEmail is the user's current address."},
        ),
        (
            errors.TooManyRequests(1),
            "too_many_requests",
            "Too many requests. Please try again later.",
            {"message": "Too many requests. Please try again later."},
        ),
    ],
)
def test_clients_read_the_names_of_their_api(
    error: LarderError, code: str, message: str, in_auth: dict[str, str]
) -> None:
    assert code_of(error) == code
    detail = {"code": code, "message": message}
    assert vercel_error(error) == {"error": detail, **detail}
    assert better_auth_error(error) == in_auth
