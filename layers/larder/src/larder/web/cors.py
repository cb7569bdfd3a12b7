"""CORS for `/api/auth`: pages of `trusted_origins` can read its replies (Fetch standard, 3.2)."""

from larder.settings import listed, settings
from larder.web.origins import check_listed_page, is_listed_origin, origin_of
from larder.web.powertools.resolver import CORSConfig, Request

_PREFLIGHT_SECONDS = 7200
"""How long a browser can cache a preflight. This is Chromium's maximum."""


class TrustedOrigins(CORSConfig):
    """The CORS headers of every reply. They name the origin, because browsers send no cookies if it is `*`."""

    def allowed_origin(self, extracted_origin: str | None) -> str | None:
        origin = origin_of(extracted_origin or "")
        return origin if is_listed_origin(origin) else None

    def to_dict(self, origin: str | None) -> dict[str, str]:
        if origin is None:
            return {}
        return {
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Allow-Credentials": "true",
            "Access-Control-Expose-Headers": "Link, Retry-After, X-Retry-After",
            "Vary": "Origin",
        }


def announced_request_headers(request: Request) -> dict[str, str]:
    """The methods and headers that a preflight's reply allows. Raises MissingOrNullOrigin, InvalidOrigin."""
    check_listed_page(request)
    headers = ["Content-Type", "Authorization", *listed(settings().api_key_headers)]
    return {
        "Access-Control-Allow-Methods": "GET, POST",
        "Access-Control-Allow-Headers": ", ".join(headers),
        "Access-Control-Max-Age": str(_PREFLIGHT_SECONDS),
    }
