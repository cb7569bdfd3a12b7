"""How long an artifact is kept (docs/decisions/quota.md#retention)."""

from datetime import datetime, timedelta

from larder.artifacts.models import Artifact, View
from larder.settings import settings
from larder.teams.models import Membership


def expires_at(artifact: Artifact) -> datetime:
    """The end of the retention, which counts from the last use."""
    return (artifact.last_used_at or artifact.created_at) + retention(artifact)


def retention(artifact: Artifact) -> timedelta:
    """How long an artifact is kept. Own scopes have a shorter time."""
    days = settings().retention_days
    if artifact.upload.scope is not None:
        days = min(days, settings().scoped_retention_days)
    return timedelta(days=days)


def object_expires_at(artifact: Artifact) -> datetime:
    """When the bucket's lifecycle hides the object. It counts from the time at which the object was stored."""
    stored_at = artifact.renewed_at or artifact.created_at
    return stored_at + timedelta(days=settings().retention_days)


def needs_renewal(artifact: Artifact, now: datetime) -> bool:
    """Whether the bucket's lifecycle would delete the object before the artifact expires.

    The lifecycle keeps a hidden object readable for the same time again. So an object is not renewed for less than a
    third of the retention.
    """
    if now < object_expires_at(artifact):
        return False
    return expires_at(artifact) - now >= retention(artifact) / 3


def is_shown(artifact: Artifact | None, view: View, now: datetime) -> bool:
    """Whether readers with this view see the artifact. False for None."""
    return artifact is not None and view.shows(artifact) and visible(artifact, now)


def may_hold_hidden(membership: Membership, now: datetime) -> bool:
    """Whether what the team stored before it was protected may still be there. Readers do not see it."""
    team, protection = membership.team, membership.state.protection
    if team is None or not protection.on or protection.trusted_from <= team.created_at:
        return False
    return now < protection.trusted_from + timedelta(days=settings().retention_days)


def visible(artifact: Artifact, now: datetime) -> bool:
    """Whether the artifact is within its retention. The sweep and S3's lifecycle delete it only after that."""
    return now < expires_at(artifact)
