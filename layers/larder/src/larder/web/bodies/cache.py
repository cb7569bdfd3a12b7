"""JSON bodies of the cache API, parsed and checked.

Without pydantic, unlike the bodies of most other endpoints.
"""

from collections.abc import Mapping
from typing import Any

from larder.artifacts.models import MAX_DURATION_MS, is_hash
from larder.settings import settings
from larder.teams.models import CachingStatus
from larder.usage.events import UsageEvent
from larder.web.bodies.values import (
    Field,
    array,
    json_body,
    number,
    one_of,
    record,
    string,
    uuid,
)
from larder.web.log import logger
from larder.web.parameters import BearerToken
from larder.web.powertools.resolver import Request

MAX_QUERIED_LENGTH = 400
"""The longest hash in a query. The reply repeats each hash, and a thousand of this length, escaped as JSON twice, still
fit into the 6 MB of a function's reply.
"""

SETTABLE = (CachingStatus.ENABLED, CachingStatus.DISABLED, CachingStatus.PAUSED)
"""The statuses that an owner can set. `over_limit` follows from the quota."""

_QUERY = json_body(
    record(
        Field(
            "hashes",
            array("hashes", string(MAX_QUERIED_LENGTH), most=lambda: settings().max_query_hashes),
        )
    )
)
_EVENTS = json_body(
    array(
        "events",
        record(
            Field("sessionId", uuid()),
            Field("source", one_of(("LOCAL", "REMOTE"))),
            Field("event", one_of(("HIT", "MISS"))),
            Field("hash", string()),
            Field("duration", number(), required=False, default=0),
            of="an event",
        ),
        most=lambda: settings().max_events,
    )
)
_CACHING = json_body(record(Field("status", one_of(SETTABLE))))


def query_hashes(_token: BearerToken, request: Request) -> list[str]:
    """`{"hashes": [...]}`, as many as the setting allows. A hash may have an invalid form."""
    hashes: list[str] = _QUERY(request)["hashes"]
    return hashes


def usage_events(_token: BearerToken, request: Request) -> list[UsageEvent]:
    """An array of events, as many as the setting allows.

    Events with an invalid hash, or a duration of no build, are skipped. The log line of the request counts them.
    """
    events = _EVENTS(request)
    kept = [
        _event(event)
        for event in events
        if is_hash(event["hash"]) and 0 <= event["duration"] <= MAX_DURATION_MS
    ]
    if len(kept) < len(events):
        logger().append_keys(skipped_events=len(events) - len(kept))
    return kept


def caching_to_set(_token: BearerToken, request: Request) -> CachingStatus:
    """`{"status": "..."}`."""
    return CachingStatus(_CACHING(request)["status"])


def _event(sent: Mapping[str, Any]) -> UsageEvent:
    return UsageEvent(
        session_id=sent["sessionId"],
        source=sent["source"],
        event=sent["event"],
        hash=sent["hash"],
        duration_ms=sent["duration"],
    )
