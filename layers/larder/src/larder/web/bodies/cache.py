"""JSON bodies of the cache API, parsed and checked.

Without pydantic, unlike the bodies of all other endpoints: it would take a quarter of these functions' cold start
(docs/decisions/cold-starts.md).
"""

import re
from collections.abc import Sequence
from typing import Annotated, Any

from larder.artifacts.models import MAX_DURATION_MS, is_hash
from larder.settings import settings
from larder.teams.models import CachingStatus
from larder.usage.events import UsageEvent
from larder.web.bodies.raw import printable, sent_json
from larder.web.errors import InvalidRequest
from larder.web.log import logger
from larder.web.parameters import BearerToken
from larder.web.powertools.resolver import Depends, Request

MAX_QUERIED_LENGTH = 400
"""The longest hash in a query. The reply repeats each hash, and a thousand of this length, escaped as JSON twice, still
fit into the 6 MB of a function's reply.
"""

SETTABLE = (CachingStatus.ENABLED, CachingStatus.DISABLED, CachingStatus.PAUSED)
"""The statuses that an owner can set. `over_limit` follows from the quota."""

EVENT_PROPERTIES = frozenset({"sessionId", "source", "event", "hash", "duration"})
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def query_hashes(_token: BearerToken, request: Request) -> list[str]:
    """`{"hashes": [...]}`, as many as the setting allows. A hash may have an invalid form."""
    hashes = _array(_object(sent_json(request), "body").get("hashes"), "hashes")
    limit = settings().max_query_hashes
    if len(hashes) > limit:
        raise InvalidRequest("hashes", f"must name at most {limit} hashes, not {len(hashes)}")
    return [_queried_hash(hash, f"hashes.{place}") for place, hash in enumerate(hashes)]


def usage_events(_token: BearerToken, request: Request) -> list[UsageEvent]:
    """An array of events, as many as the setting allows.

    Events with an invalid hash are skipped. The log line of the request counts them.
    """
    events = _array(sent_json(request), "body")
    limit = settings().max_events
    if len(events) > limit:
        raise InvalidRequest("body", f"must hold at most {limit} events, not {len(events)}")
    parsed = [_event(event, str(place)) for place, event in enumerate(events)]
    kept = [event for event in parsed if is_hash(event.hash)]
    if len(kept) < len(parsed):
        logger().append_keys(skipped_events=len(parsed) - len(kept))
    return kept


def caching_to_set(_token: BearerToken, request: Request) -> CachingStatus:
    """`{"status": "..."}`."""
    status = _object(sent_json(request), "body").get("status")
    return CachingStatus(_one_of(SETTABLE, status, "status"))


def _event(sent: object, place: str) -> UsageEvent:
    """One usage event. Unknown properties are refused."""
    event = _object(sent, place)
    if unknown := [name for name in event if name not in EVENT_PROPERTIES]:
        raise InvalidRequest(printable(f"{place}.{unknown[0]}"), "is not a property of an event")
    return UsageEvent(
        session_id=_uuid(event.get("sessionId"), f"{place}.sessionId"),
        source=_one_of(("LOCAL", "REMOTE"), event.get("source"), f"{place}.source"),
        event=_one_of(("HIT", "MISS"), event.get("event"), f"{place}.event"),
        hash=_text(event.get("hash"), f"{place}.hash"),
        duration_ms=_duration_ms(event.get("duration", 0), f"{place}.duration"),
    )


def _object(value: object, field: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidRequest(field, "must be an object")
    return value


def _array(value: object, field: str) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidRequest(field, "must be an array")
    return value


def _one_of(allowed: Sequence[str], value: object, field: str) -> str:
    if not isinstance(value, str) or value not in allowed:
        raise InvalidRequest(field, f"must be one of {', '.join(allowed)}")
    return value


def _text(value: object, field: str) -> str:
    if not isinstance(value, str):
        raise InvalidRequest(field, "must be a string")
    try:
        value.encode()
    except UnicodeEncodeError:
        # JSON can escape half of a surrogate pair. Many clients could not parse a reply that repeats it.
        raise InvalidRequest(field, "must be valid Unicode") from None
    return value


def _queried_hash(value: object, field: str) -> str:
    text = _text(value, field)
    if len(text) > MAX_QUERIED_LENGTH:
        raise InvalidRequest(field, f"must have at most {MAX_QUERIED_LENGTH} characters")
    return text


def _uuid(value: object, field: str) -> str:
    if not isinstance(value, str) or not UUID.fullmatch(value):
        raise InvalidRequest(field, "must be a UUID")
    return value.lower()


def _duration_ms(value: Any, field: str) -> float:
    """In milliseconds."""
    # In Python, True is an int too.
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= MAX_DURATION_MS:
        raise InvalidRequest(field, f"must be a number from 0 to {MAX_DURATION_MS}")
    return float(value)


QueryHashes = Annotated[list[str], Depends(query_hashes)]
CachingToSet = Annotated[CachingStatus, Depends(caching_to_set)]
Events = Annotated[list[UsageEvent], Depends(usage_events)]
