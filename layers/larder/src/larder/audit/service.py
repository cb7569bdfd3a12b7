"""Make and read audit entries."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from larder import clock
from larder.actor import Actor
from larder.audit import repository
from larder.audit.models import Action, Entry, Page
from larder.hashing import time_ordered_id

if TYPE_CHECKING:
    from larder.tables import Write


_TOKEN = "token#"  # noqa: S105  # a kind of owner
_ISSUED = "0" * 28
"""The id of the only entry of a token, so that those of several can be read at once."""

_NO_DETAILS: Mapping[str, str] = {}
_READ_AT_ONCE = 100

MOST_READ = 10 * _READ_AT_ONCE
"""The most entries that one request reads to find those with some actions."""


def make_entry(
    owner: str,
    action: Action,
    subject: str,
    actor: Actor | None,
    *,
    artifacts: int = 0,
    size_bytes: int = 0,
    role: str | None = None,
    now: datetime,
) -> Entry:
    """Make an entry. The caller stores it in the transaction of the action."""
    return Entry(
        id=time_ordered_id(now),
        owner=owner,
        at=now,
        action=action,
        subject=subject,
        actor=actor,
        artifacts=artifacts,
        size_bytes=size_bytes,
        role=role,
    )


def audited(
    owner: str,
    action: Action,
    subject: str,
    actor: Actor | None,
    *,
    name: str | None = None,
    role: str | None = None,
    details: Mapping[str, str] = _NO_DETAILS,
) -> "Write":
    """The write of an entry, for the transaction of the action. `owner` is the user or team that it is about."""
    entry = make_entry(owner, action, subject, actor, role=role, now=clock.now())
    return repository.put(replace(entry, name=name, details=details))


def issued(key_id: str, rule_id: str, actor: Actor, details: Mapping[str, str]) -> "Write":
    """The write of the entry that a CI job got a key.

    It has an owner of its own, because a team can get thousands of keys an hour. It is found by the writer of an
    artifact, long after the key has expired.
    """
    entry = make_entry(_TOKEN + key_id, Action.TOKEN_ISSUED, rule_id, actor, now=clock.now())
    return repository.put(replace(entry, id=_ISSUED, details=details))


def tokens(key_ids: Iterable[str]) -> dict[str, Entry]:
    """Those of the keys that CI jobs got, by their ids. One read for up to 100 keys, and none without keys."""
    owners = {_TOKEN + id: id for id in key_ids}
    found = repository.read_many([(owner, _ISSUED) for owner in sorted(owners)])
    return {owners[entry.owner]: entry for entry in found}


def read_entries(
    owner: str,
    *,
    before: str | None = None,
    limit: int,
    actions: Collection[Action] = (),
    now: datetime,
) -> Page:
    """At most `limit` entries of a team or user, newest first. `before` is the last page's `next_before`.

    With `actions`, only entries with one of them, among the next `MOST_READ` entries.
    """
    if not actions:
        return repository.read_page(owner, before=before, limit=limit, now=now)
    found: list[Entry] = []
    for _ in range(MOST_READ // _READ_AT_ONCE):
        page = repository.read_page(owner, before=before, limit=_READ_AT_ONCE, now=now)
        found += [entry for entry in page.entries if entry.action in actions]
        if len(found) >= limit:
            return Page(entries=tuple(found[:limit]), next_before=found[limit - 1].id)
        before = page.next_before
        if before is None:
            break
    return Page(entries=tuple(found), next_before=before)


def jobs_of(owner: str, writers: Iterable[Actor | None]) -> dict[str, Mapping[str, str]]:
    """What is known of the CI jobs among the writers of an owner's artifacts, by the ids of their tokens.

    The audit has them long after their tokens have ended.
    """
    ids = {writer.credential_id for writer in writers if writer and writer.rule_id}
    return {
        id: entry.details for id, entry in tokens(ids).items() if entry.details.get("team") == owner
    }
