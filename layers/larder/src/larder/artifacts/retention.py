"""How long an artifact is kept."""

from datetime import datetime, timedelta

from larder.artifacts.models import Artifact
from larder.settings import settings


def expires_at(artifact: Artifact) -> datetime:
    """The end of its retention, counted from its upload."""
    return artifact.created_at + timedelta(days=settings().retention_days)


def visible(artifact: Artifact, now: datetime) -> bool:
    """Whether the retention has not passed yet. The sweep and S3's lifecycle only clear away what this hides."""
    return now < expires_at(artifact)
