"""How long an artifact is kept."""

from datetime import datetime, timedelta

from larder.artifacts.models import Artifact
from larder.settings import settings


def expires_at(artifact: Artifact) -> datetime:
    """The end of the retention, which starts with the upload."""
    return artifact.created_at + timedelta(days=settings().retention_days)


def visible(artifact: Artifact, now: datetime) -> bool:
    """Whether the artifact is within its retention. The sweep and S3's lifecycle delete it only after that."""
    return now < expires_at(artifact)
