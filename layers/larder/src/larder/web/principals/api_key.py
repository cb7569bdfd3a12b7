"""An API key in a header of a request to `/api/auth`, used in place of a session if the deployment allows it."""

from larder import clock
from larder.api_keys.models import ApiKey, Refusal
from larder.api_keys.verification import presented_form, verify_presented
from larder.errors import NotSignedIn, RateLimited, UsageExceeded
from larder.extensions import hook
from larder.settings import listed, settings
from larder.web.errors import InvalidApiKey
from larder.web.powertools.resolver import Request
from larder.web.request_context import lower_headers, request_context, whole_request_context

MAX_KEY_LENGTH = 256
"""The longest key, including those from an integrator's own function."""


def presented_key(request: Request) -> ApiKey | None:
    """Verify the key in the request's header, which counts as one use. None if there is no key.

    Raises InvalidApiKey for a key that is too short, NotSignedIn for one that is unknown, disabled, expired or a
    team's own, RateLimited, UsageExceeded.
    """
    options = settings()
    if not options.session_for_api_keys or options.disable_session_for_api_keys:
        return None
    raw = _sent_key(request)
    if raw is None:
        return None
    if len(raw) < options.default_key_length:
        raise InvalidApiKey
    if len(raw) > MAX_KEY_LENGTH:
        raise NotSignedIn
    key_hash = presented_form(raw, request_context(request))
    verification = verify_presented(key_hash, {}, of_team=False, now=clock.now())
    match verification.refusal:
        case Refusal.RATE_LIMITED:
            raise RateLimited(verification.try_again_in_ms or 0)
        case Refusal.USED_UP:
            raise UsageExceeded
    if verification.key is None or not verification.valid:
        raise NotSignedIn
    return verification.key


def _sent_key(request: Request) -> str | None:
    """The key, as found by the integrator's function, or in the first of `api_key_headers` that the request has."""
    headers = lower_headers(request)
    finder = hook("find_api_key")
    if finder is None:
        names = map(str.lower, listed(settings().api_key_headers))
        return next((headers[name] for name in names if headers.get(name)), None)
    raw = finder(headers=headers, ctx=whole_request_context(request))
    if raw is not None and not isinstance(raw, str):
        raise finder.refused("must return a string or None")
    return raw or None
