"""Removals in replies to those who manage artifacts."""

from typing import Literal, NotRequired, TypedDict

from larder.artifacts.records import Removal, RemovalPage
from larder.artifacts.selection import EVERYTHING, is_scope, range_of
from larder.audit.models import Entry
from larder.clock import Milliseconds, to_ms
from larder.web.queries.artifacts import cursor_of
from larder.web.replies.artifacts import WriterJson, writer_json

# A class cannot have a property named `from`, which is a keyword of Python.
TargetJson = TypedDict(
    "TargetJson",
    {
        "writer": NotRequired[str],
        "scope": NotRequired[str],
        "from": NotRequired[Milliseconds],
        "until": NotRequired[Milliseconds],
        "all": NotRequired[Literal[True]],
    },
)


class RemovalJson(TargetJson, TypedDict):
    """What is deleted: all from the writer, all in the own scope, all of a time, or everything."""

    askedAt: Milliseconds


class OpenRemovalJson(RemovalJson, TypedDict):
    """A removal and what it has deleted so far. `by` is null for an operator.

    `passedAt` is null while it deletes. A second pass, a day later, finds uploads that were in progress.
    """

    by: WriterJson | None
    artifacts: int
    sizeBytes: int
    passedAt: Milliseconds | None


class AcceptedRemovalJson(TypedDict):
    removal: RemovalJson


class RemovalsPageJson(TypedDict):
    """Send `next` as `cursor` to get the next page. It is null on the last page."""

    count: int
    next: str | None


class RemovalsJson(TypedDict):
    removals: list[OpenRemovalJson]
    pagination: RemovalsPageJson


def removal_json(entry: Entry) -> AcceptedRemovalJson:
    return {"removal": {**_target_json(entry.subject), "askedAt": to_ms(entry.at)}}


def removals_json(page: RemovalPage) -> RemovalsJson:
    return {
        "removals": [_open_removal_json(removal) for removal in page.removals],
        "pagination": {"count": len(page.removals), "next": cursor_of(page.following)},
    }


def _open_removal_json(removal: Removal) -> OpenRemovalJson:
    return {
        **_target_json(removal.target),
        "askedAt": to_ms(removal.asked_at),
        "by": None if removal.by is None else writer_json(removal.by),
        "artifacts": removal.artifacts,
        "sizeBytes": removal.size_bytes,
        "passedAt": None if removal.passed_at is None else to_ms(removal.passed_at),
    }


def _target_json(target: str) -> TargetJson:
    if target == EVERYTHING:
        return {"all": True}
    if (period := range_of(target)) is not None:
        return {"from": to_ms(period.since), "until": to_ms(period.until)}
    return {"scope": target} if is_scope(target) else {"writer": target}
