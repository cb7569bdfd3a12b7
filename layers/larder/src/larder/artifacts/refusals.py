"""Note why uploads were refused, so that a later run that misses the artifact can say it.

Only a refused upload causes a call, at most one an hour for each credential, reason and instance.
"""

from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import TYPE_CHECKING

from larder.actor import Actor
from larder.artifacts.models import Refusal
from larder.errors import (
    CachingOverLimit,
    EvictionInProgress,
    LarderError,
    LargerThanQuota,
    ReadOnly,
    ScopesFull,
    SignatureRequired,
    StorageFull,
    TryAgain,
)
from larder.instance import Remembered

if TYPE_CHECKING:
    from larder.artifacts.records import Refused


_REFUSALS: dict[type[LarderError], Refusal] = {
    ReadOnly: Refusal.READ_ONLY,
    SignatureRequired: Refusal.SIGNATURE_REQUIRED,
    CachingOverLimit: Refusal.QUOTA_FULL,
    EvictionInProgress: Refusal.QUOTA_FULL,
    LargerThanQuota: Refusal.QUOTA_FULL,
    ScopesFull: Refusal.SCOPES_FULL,
    StorageFull: Refusal.STORAGE_FULL,
}

_noted: Remembered[tuple[str, str, Refusal], str] = Remembered(1000)
"""The hour of the last note of this instance, by owner, credential and reason."""


def read_refusals(owner: str, times: Iterable[tuple[str, datetime, datetime]]) -> "list[Refused]":
    """What was noted in the hours of these times: a credential, the first and the last moment of each.

    Of each reason, only the first refusal in an hour is noted.
    """
    from larder.artifacts.repository import refusals

    return refusals.read(owner, times)


@contextmanager
def noting_refusals(owner: str, writer: Actor, *, now: datetime) -> Generator[None, None, None]:
    """Note an error of the block that refuses the upload, and raise it."""
    try:
        yield
    except LarderError as error:
        refusal = _REFUSALS.get(type(error))
        if refusal is not None:
            note_refusal(owner, writer, refusal, now=now)
        raise


def note_refusal(owner: str, writer: Actor, refusal: Refusal, *, now: datetime) -> None:
    """Note it, unless this instance has in this hour. If that fails, nothing else does."""
    # Imported here: requests start faster without it.
    from larder.artifacts.repository import refusals

    place, hour = (owner, writer.credential_id, refusal), refusals.hour_of(now)
    if _noted.get(place) == hour:
        return
    with suppress(TryAgain):
        refusals.note(owner, writer.credential_id, refusal, at=now)
        _noted[place] = hour
