"""The line of the log that tells the same as an entry of the audit."""

from larder.audit.models import Entry
from larder.web.log import logger


def log_entry(entry: Entry | None) -> None:
    """Ids only. Nothing, when nothing was done."""
    if entry is None:
        return
    logger().info(
        "audit",
        extra={
            "action": entry.action.value,
            "owner": entry.owner,
            "subject": entry.subject,
            "user_id": entry.actor.user_id,
            "credential_id": entry.actor.credential_id,
            "artifacts": entry.artifacts,
            "size_bytes": entry.size_bytes,
        },
    )
