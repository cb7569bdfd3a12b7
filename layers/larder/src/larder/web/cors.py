"""Which pages of other origins may read what `/api/auth` answers: those of `trusted_origins` (Fetch standard, 3.2)."""

from aws_lambda_powertools.event_handler import CORSConfig, Request

from larder.settings import listed, settings
from larder.web.origins import check_listed_page, is_listed_origin, origin_of

_PREFLIGHT_SECONDS = 7200
"""For how long a browser need not ask again; Chromium keeps no answer for longer."""


class TrustedOrigins(CORSConfig):
    """The headers of every reply: the asking origin by its name, for cookies are not sent to a `*`."""

    def allowed_origin(self, extracted_origin: str | None) -> str | None:
        origin = origin_of(extracted_origin or "")
        return origin if is_listed_origin(origin) else None

    def to_dict(self, origin: str | None) -> dict[str, str]:
        if origin is None:
            return {}
        return {
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Allow-Credentials": "true",
            "Access-Control-Expose-Headers": "Retry-After, X-Retry-After",
            "Vary": "Origin",
        }


def announced_request_headers(request: Request) -> dict[str, str]:
    """What a preflight is told besides: methods and headers that the request itself may have.

    Raises MissingOrNullOrigin, InvalidOrigin.
    """
    check_listed_page(request)
    headers = ["Content-Type", "Authorization", *listed(settings().api_key_headers)]
    return {
        "Access-Control-Allow-Methods": "GET, POST",
        "Access-Control-Allow-Headers": ", ".join(headers),
        "Access-Control-Max-Age": str(_PREFLIGHT_SECONDS),
    }
