"""JSON bodies, parsed and checked. A module of its own: pydantic costs a cold start what the other parameters don't."""

from typing import Annotated, Literal
from uuid import UUID

from aws_lambda_powertools.event_handler import Request
from aws_lambda_powertools.event_handler.depends import Depends
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from larder.artifacts.models import HASH_PATTERN, ArtifactHash
from larder.errors import InvalidRequest
from larder.settings import settings
from larder.teams.models import CachingStatus
from larder.usage.models import UsageEvent
from larder.web.json_body import first_error, sent_json
from larder.web.parameters import MAX_DURATION_MS, BearerToken

_Hash = Annotated[str, StringConstraints(pattern=f"^{HASH_PATTERN}$")]


class _Query(BaseModel):
    model_config = ConfigDict(strict=True)

    hashes: list[_Hash]


class _Caching(BaseModel):
    """What an owner sets. `over_limit` follows from the quota, and nobody sets it."""

    model_config = ConfigDict(strict=True)

    status: Literal["enabled", "disabled", "paused"]


class _Event(BaseModel):
    """One usage event (spec 1, part 2): no other properties are allowed."""

    model_config = ConfigDict(strict=True, extra="forbid")

    sessionId: Annotated[UUID, Field(strict=False)]  # noqa: N815  # the name on the wire
    source: Literal["LOCAL", "REMOTE"]
    event: Literal["HIT", "MISS"]
    hash: _Hash
    # The unit is not shown in the specification; build clients send milliseconds.
    duration: Annotated[float, Field(ge=0, le=MAX_DURATION_MS, allow_inf_nan=False)] = 0


_Events = TypeAdapter(list[_Event])


def query_hashes(_token: BearerToken, request: Request) -> list[ArtifactHash]:
    """`{"hashes": [...]}`, as many as the setting allows."""
    try:
        hashes = _Query.model_validate(sent_json(request)).hashes
    except ValidationError as error:
        raise InvalidRequest(*first_error(error)) from None
    limit = settings().max_query_hashes
    if len(hashes) > limit:
        raise InvalidRequest("hashes", f"must name at most {limit} hashes, not {len(hashes)}")
    return [ArtifactHash(hash) for hash in hashes]


def usage_events(_token: BearerToken, request: Request) -> list[UsageEvent]:
    """An array of events, as many as the setting allows."""
    try:
        events = _Events.validate_python(sent_json(request))
    except ValidationError as error:
        raise InvalidRequest(*first_error(error)) from None
    limit = settings().max_events
    if len(events) > limit:
        raise InvalidRequest("body", f"must hold at most {limit} events, not {len(events)}")
    return [
        UsageEvent(
            session_id=str(event.sessionId),
            source=event.source,
            event=event.event,
            hash=event.hash,
            duration_ms=event.duration,
        )
        for event in events
    ]


def caching_to_set(_token: BearerToken, request: Request) -> CachingStatus:
    """`{"status": "..."}`."""
    try:
        return CachingStatus(_Caching.model_validate(sent_json(request)).status)
    except ValidationError as error:
        raise InvalidRequest(*first_error(error)) from None


QueryHashes = Annotated[list[ArtifactHash], Depends(query_hashes)]
CachingToSet = Annotated[CachingStatus, Depends(caching_to_set)]
Events = Annotated[list[UsageEvent], Depends(usage_events)]
