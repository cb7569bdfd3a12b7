"""Publish uploads: the artifact of an object that is in the bucket becomes the one that readers get, or is discarded.

Three callers do this in any order, and each completes what the others left: the S3 event, the first request for the
hash, and the sweep.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from larder.actor import Actor
from larder.artifacts import quota, storage
from larder.artifacts.expiry import is_shown, visible
from larder.artifacts.models import (
    HELD_BODY_BYTES,
    INDEXED_BODY_BYTES,
    Artifact,
    Contested,
    IndexEntry,
    PendingUpload,
    Refusal,
    Upload,
    View,
    view_of,
)
from larder.artifacts.quota import Reservation
from larder.artifacts.refusals import note_refusal
from larder.artifacts.repository import index
from larder.artifacts.repository.totals import add_to_totals
from larder.artifacts.storage import StoredObject, StoredUpload
from larder.concurrency import attempts, in_parallel
from larder.errors import EvictionInProgress, TryAgain
from larder.metrics import count_in_total
from larder.settings import settings
from larder.teams.models import is_team_id
from larder.teams.state import membership_of, read_state

if TYPE_CHECKING:
    from larder.audit.models import Entry

_REQUEST_TAKES = timedelta(seconds=30)
"""The longest time a request runs. A request publishes its upload within this time, or never."""


class _Outcome(NamedTuple):
    """The artifact that readers see, and whether the upload waits for space instead of being published."""

    artifact: Artifact | None
    waits: bool = False


def publish_version(upload: Upload, version: str, *, now: datetime) -> bool:
    """Publish an upload when the S3 event of a version arrives. The event may come twice, late, or after a deletion.

    The presigned URL of an upload takes further objects until it expires, and each is a version of its own. Readers
    keep the version that was published. Returns False if that is another one: then this version is deleted.
    """
    artifact = publish(upload, version=version, now=now)
    if artifact is None or artifact.upload.id != upload.id or artifact.version == version:
        return True
    storage.delete_version(upload, version)
    return False


def publish(upload: Upload, *, version: str | None = None, now: datetime) -> Artifact | None:
    """Publish or discard an upload, by this version of its object or the latest one.

    Returns the artifact that readers see afterwards. Raises TryAgain if other writers come first each time.
    """
    view = view_of(read_state(upload.owner), upload.scope)
    attempt = _Attempt(upload, view, now, version, now.date(), evicts=True, holds=True)
    return attempt.publish()


def publish_again(stored: StoredUpload, *, view: View, now: datetime) -> Artifact | None:
    """Publish an upload that was stored long ago, without counting it to a day's uploads."""
    return _Attempt(stored.upload, view, now, stored.version).publish()


def publish_offered(entry: IndexEntry, *, view: View, now: datetime) -> Artifact | None:
    """Publish a direct upload if it has arrived, and return the artifact that readers see. Raises TryAgain."""
    if entry.pending is None:
        return entry.artifact
    try:
        attempt = _Attempt(entry.pending.upload, view, now, counted_on=now.date())
        return attempt.publish_over(entry).artifact
    except TryAgain:
        # Other writers came first, or a store fails. The previous artifact is still complete. Without one, the reply
        # must not be "not found", because the upload may have arrived.
        if entry.artifact is None:
            raise
        return entry.artifact


def publish_reserved(
    reservation: Reservation,
    *,
    pending: PendingUpload | None = None,
    offered: bool = False,
    now: datetime,
) -> bool:
    """Publish the artifact if there is space for it, otherwise discard its object.

    Returns False, and changes nothing, if another write came first.
    """
    upload = reservation.artifact.upload
    if not reservation.granted:
        return index.discard(upload, pending=pending, now=now)
    reservation.kept = index.publish(
        reservation.artifact,
        replaces=reservation.replaces,
        pending=pending,
        offered=offered,
        noting=_replacement(reservation, now),
        now=now,
    )
    return reservation.kept


def _replacement(reservation: Reservation, now: datetime) -> "Entry | None":
    """The audit entry of an artifact that replaces another writer's, or any that a protected team reads."""
    artifact, replaces, view = reservation.artifact, reservation.replaces, reservation.view
    if replaces is None:
        return None
    in_shared = view.is_protected and artifact.upload.scope is None
    if in_shared and not view.shows(replaces):
        # No one reads it.
        return None
    if replaces.writer == artifact.writer and not in_shared:
        return None
    # Imported here because cache requests start faster without it.
    from larder.audit.models import Action
    from larder.audit.service import make_entry

    upload = artifact.upload
    return make_entry(
        upload.owner,
        Action.ARTIFACT_REPLACED,
        upload.hash,
        artifact.writer,
        artifacts=1,
        size_bytes=replaces.size_bytes,
        now=now,
    )


def hold_body(artifact: Artifact, body: bytes) -> None:
    """Keep the body of an artifact next to the index, if it belongs there. Without it, readers take the object."""
    if artifact.is_held:
        with suppress(TryAgain):
            index.hold_body(artifact, body)


def delete_from_index(artifact: Artifact, *, noting: "Entry | None" = None, now: datetime) -> bool:
    """Delete an artifact from the index and the totals, and write the audit entry with it, if there is one.

    Returns False, and changes nothing, if the index holds something else by now.
    """
    deleted = index.delete(artifact, noting=noting, now=now)
    if deleted:
        scoped = artifact.upload.scope is not None
        add_to_totals(artifact.upload.owner, -artifact.size_bytes, -1, scoped=scoped)
    return deleted


class _Attempt(NamedTuple):
    """An attempt to publish one upload, by this version of its object, or the latest for None.

    `counted_on` is the day whose uploads include it, None for an upload that is not new. With `evicts`, Larder frees
    space for it. With `holds`, it keeps the body next to the index; a reader does not wait for that.
    """

    upload: Upload
    view: View
    now: datetime
    version: str | None = None
    counted_on: date | None = None
    evicts: bool = False
    holds: bool = False

    def publish(self) -> Artifact | None:
        """Raises EvictionInProgress and TryAgain if the upload has to wait for space."""
        entry, discarded = index.read_for_publishing(self.upload, now=self.now)
        if discarded:
            return entry.artifact
        outcome = self.publish_over(entry)
        if outcome.waits:
            raise EvictionInProgress if settings().evicts else TryAgain
        return outcome.artifact

    def publish_over(self, entry: IndexEntry) -> _Outcome:
        """Publish the upload if its object is complete and the index holds no newer upload. Raises TryAgain."""
        upload = self.upload
        if _is_published(upload, entry):
            return _Outcome(entry.artifact)
        with _checking_trust(upload, self.view, self.now) as has_lost_trust:
            stored = storage.head(upload, self.version)
        if stored is None:
            return _Outcome(entry.artifact)
        small = stored.size_bytes <= (HELD_BODY_BYTES if self.holds else INDEXED_BODY_BYTES)
        body = storage.get(upload, stored.version, stored.size_bytes) if small else None
        in_progress = _may_be_in_progress(upload, stored, self.now)
        for attempt in attempts():
            if attempt:
                entry, discarded = index.read_for_publishing(upload, now=self.now)
                if discarded or _is_published(upload, entry):
                    return _Outcome(entry.artifact)
            current, pending = entry.artifact, _offer_of(upload, entry)
            artifact = _make_artifact(upload, stored, pending, body)
            if entry.pending is not None and entry.pending.upload.id > upload.id:
                artifact = replace(artifact, offered=entry.pending.upload.id)
            has_trust = not has_lost_trust()
            kept = self._kept(artifact, current, pending) if has_trust else None
            refusal = self._refusal(artifact)
            is_stored = has_trust and kept is None and refusal is None
            if not is_stored or not self._is_acceptable(artifact, current):
                if index.discard(upload, pending=pending, now=self.now):
                    if kept is not None:
                        report_kept(kept, artifact, now=self.now)
                    elif has_trust and refusal is not None:
                        self._note(artifact, refusal)
                    return _Outcome(current)
                continue
            with quota.reservation(
                artifact,
                current,
                view=self.view,
                counted_on=self.counted_on,
                evicts=self.evicts and not in_progress,
                now=self.now,
            ) as reservation:
                refused = reservation.storage_full or reservation.scopes_full
                waits = in_progress or (settings().evicts and not refused)
                if not reservation.granted and waits:
                    return _Outcome(current, waits=True)
                if publish_reserved(reservation, pending=pending, offered=True, now=self.now):
                    if not reservation.granted:
                        self._note(artifact, reservation.refusal)
                        return _Outcome(current)
                    if body is not None:
                        hold_body(artifact, body)
                    return _Outcome(artifact)
        raise TryAgain

    def _kept(
        self, artifact: Artifact, current: Artifact | None, pending: PendingUpload | None
    ) -> Artifact | None:
        """The current artifact, if the team keeps it in place of this one."""
        if current is None or (pending is not None and pending.replaces):
            return None
        return current if keeps(current, artifact, self.view, self.now) else None

    def _is_acceptable(self, artifact: Artifact, current: Artifact | None) -> bool:
        return (
            0 < artifact.size_bytes <= settings().max_upload_bytes
            and visible(artifact, self.now)
            and (current is None or current.upload.id < artifact.upload.id)
        )

    def _refusal(self, artifact: Artifact) -> Refusal | None:
        if self.view.requires_tag and artifact.metadata.tag is None:
            return Refusal.SIGNATURE_REQUIRED
        return None if quota.can_fit(artifact, self.view) else Refusal.QUOTA_FULL

    def _note(self, artifact: Artifact, refusal: Refusal) -> None:
        """Note why the upload is not stored. An upload of long ago explains nothing."""
        if self.counted_on is not None and artifact.writer is not None:
            note_refusal(artifact.upload.owner, artifact.writer, refusal, now=self.now)


@contextmanager
def _checking_trust(
    upload: Upload, view: View, now: datetime
) -> Generator[Callable[[], bool], None, None]:
    """Read, while the block runs, whether the writer of a direct upload may still write the shared scope of its team.

    The URL of an upload works until it expires, even if the credential is revoked. Yields a function to call after
    the block: has the writer lost trust?
    """
    if not view.is_protected or upload.scope is not None or upload.writer is None:
        yield lambda: False
        return
    with in_parallel(_has_lost_trust, upload, upload.writer, now) as checking:
        yield checking.result


def _has_lost_trust(upload: Upload, writer: Actor, now: datetime) -> bool:
    """Whether the writer's rule was changed, disabled or deleted since the offer, or its user has lost the role or all
    access.

    A team's own key has no role to lose: it is trusted as long as the team exists.
    """
    if writer.holder_id is None:
        return False
    membership = membership_of(upload.owner, writer.holder_id)
    if is_team_id(writer.holder_id):
        return membership.team is None
    if writer.rule_id is not None:
        rule = membership.rule
        return rule is None or not rule.enabled or rule.version != upload.rule_version
    if membership.user is None or not membership.user.has_access(now):
        return True
    return membership.role is None or not membership.role.names_trusted


def keeps(current: Artifact, artifact: Artifact, view: View, now: datetime) -> bool:
    """Whether the team keeps the current artifact in place of this one, which is not stored then."""
    upload = artifact.upload
    return view.keeps_first_of(upload.hash, upload.scope) and is_shown(current, view, now)


def report_kept(current: Artifact, artifact: Artifact, *, now: datetime) -> None:
    """Record that an artifact was not stored in favour of the current one, if it is known to differ.

    Writes a log line with the metric `KeptDiffering`, and marks the current artifact at most once a day. An error does
    not fail the upload.
    """
    if not _are_different(current, artifact):
        return
    count_in_total(
        "KeptDiffering",
        owner=current.upload.owner,
        hash=current.upload.hash,
        kept=_description(current),
        refused=_description(artifact),
    )
    with suppress(TryAgain):
        by = Contested(at=now, writer=artifact.writer, sha256=artifact.sha256)
        index.note_contested(current, by)


def _are_different(one: Artifact, other: Artifact) -> bool:
    """False if the digest of either is not known and their sizes are equal."""
    if one.size_bytes != other.size_bytes:
        return True
    return None not in (one.sha256, other.sha256) and one.sha256 != other.sha256


def _description(artifact: Artifact) -> dict[str, str | int | None]:
    writer = artifact.writer
    return {
        "upload_id": artifact.upload.id,
        "writer": None if writer is None else writer.credential_id,
        "size_bytes": artifact.size_bytes,
        "sha256": artifact.sha256,
    }


def _is_published(upload: Upload, entry: IndexEntry) -> bool:
    return entry.artifact is not None and entry.artifact.upload.id == upload.id


def _offer_of(upload: Upload, entry: IndexEntry) -> PendingUpload | None:
    """The pending item of the upload. None if the item belongs to another upload."""
    pending = entry.pending
    return pending if pending is not None and pending.upload.id == upload.id else None


def _may_be_in_progress(upload: Upload, stored: StoredObject, now: datetime) -> bool:
    """Whether a function stored the object, and may publish it soon. Then the totals count it already."""
    through_function = upload.writer is None and stored.writer is not None
    return through_function and now - stored.stored_at < _REQUEST_TAKES


def _make_artifact(
    upload: Upload, stored: StoredObject, pending: PendingUpload | None, body: bytes | None
) -> Artifact:
    return Artifact(
        upload=upload,
        size_bytes=stored.size_bytes,
        created_at=stored.stored_at,
        version=stored.version,
        metadata=stored.metadata,
        writer=upload.writer or stored.writer or (pending.writer if pending else None),
        body=body if stored.size_bytes <= INDEXED_BODY_BYTES else None,
        sha256=stored.sha256,
        # The index was lost with the uses in it. A copy proves one.
        last_used_at=stored.renewed_at,
        renewed_at=stored.renewed_at,
    )
