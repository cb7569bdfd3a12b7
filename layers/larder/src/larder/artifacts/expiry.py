"""How long an artifact is kept."""

from datetime import datetime, timedelta

from larder.artifacts.models import Artifact, View
from larder.settings import settings


def expires_at(artifact: Artifact) -> datetime:
    """The end of the retention, which starts with the upload. Own scopes have a shorter one."""
    days = settings().retention_days
    if artifact.upload.scope is not None:
        days = min(days, settings().scoped_retention_days)
    return artifact.created_at + timedelta(days=days)


def is_shown(artifact: Artifact | None, view: View, now: datetime) -> bool:
    """Whether readers with this view see the artifact. False for None."""
    return artifact is not None and view.shows(artifact) and visible(artifact, now)


def visible(artifact: Artifact, now: datetime) -> bool:
    """Whether the artifact is within its retention. The sweep and S3's lifecycle delete it only after that."""
    return now < expires_at(artifact)
