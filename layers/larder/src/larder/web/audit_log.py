"""Log lines that record which user did what. They contain ids only."""

from typing import TYPE_CHECKING

from larder.actor import Actor
from larder.web.log import logger

if TYPE_CHECKING:
    from larder.audit.models import Entry


def audit(action: str, actor: Actor | None, *, owner: str, subject: str) -> None:
    """Log an action that is not stored in the audit table. `owner` is the team or user that the actor acted for.

    `actor` is None for a request without a key or session, such as a sign-in or the use of a mailed link.
    """
    _write(action, owner, subject, actor)


def audit_entry(entry: "Entry | None") -> None:
    """Log an entry of the audit table. Does nothing for None."""
    if entry is None:
        return
    removed = {"artifacts": entry.artifacts, "size_bytes": entry.size_bytes}
    _write(entry.action.value, entry.owner, entry.subject, entry.actor, **removed)


def _write(action: str, owner: str, subject: str, actor: Actor | None, **removed: int) -> None:
    line = {
        "action": action,
        "owner": owner,
        "subject": subject,
        "user_id": actor.holder_id if actor else None,
        "credential_id": actor.credential_id if actor else None,
        **removed,
    }
    logger().info("audit", extra=line)
