"""Refused uploads: an item for each credential and hour, with the first time of each reason."""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from larder.artifacts.models import Refusal
from larder.artifacts.records import Refused
from larder.clock import from_ms, to_epoch_seconds, to_ms
from larder.conditions import begins_with, equals, missing
from larder.tables import ARTIFACTS, Key, commit

_REFUSED = "#refused#"

_NOTED_FOR = timedelta(days=31)
"""By default, runs are kept for 30 days."""

_HOUR = timedelta(hours=1)


def hour_of(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H")


def note(owner: str, credential_id: str, refusal: Refusal, *, at: datetime) -> None:
    """Note a refusal, unless there is one for this reason in this hour."""
    noted = {refusal: to_ms(at), "expires_at": to_epoch_seconds(at + _NOTED_FOR)}
    key = _key(owner, credential_id, hour_of(at))
    commit(ARTIFACTS.update(*key, set=noted, when=missing(refusal)))


def read(owner: str, times: Iterable[tuple[str, datetime, datetime]]) -> list[Refused]:
    """What was noted in the hours of these times: a credential, the first and the last moment of each."""
    keys = {
        _key(owner, credential_id, hour): None
        for credential_id, first, last in times
        for hour in _hours(first, last)
    }
    return [
        Refused(
            credential_id=item["hash"].removeprefix(_REFUSED).rpartition("#")[0],
            refusal=refusal,
            at=from_ms(item[refusal]),
        )
        for item in ARTIFACTS.get_many(list(keys))
        for refusal in Refusal
        if refusal in item
    ]


def delete_all(owner: str, *, has_time: Callable[[], bool]) -> bool:
    """Delete what is noted of a deleted owner. False if there was no time for all of it."""
    noted = equals(owner=owner) & begins_with(hash=_REFUSED)
    return ARTIFACTS.delete_each(ARTIFACTS.query(noted, only=("owner", "hash")), has_time)


def _hours(first: datetime, last: datetime) -> list[str]:
    start = first.replace(minute=0, second=0, microsecond=0)
    return [hour_of(start + number * _HOUR) for number in range((last - start) // _HOUR + 1)]


def _key(owner: str, credential_id: str, hour: str) -> Key:
    return owner, f"{_REFUSED}{credential_id}#{hour}"
