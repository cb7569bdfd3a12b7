"""Log lines that record which user did what. They contain ids only."""

from typing import TYPE_CHECKING, Protocol

from larder.web.log import logger

if TYPE_CHECKING:
    from larder.audit.models import Entry


class Acting(Protocol):
    """The acting user, their key or session, and the team or user that they act for."""

    @property
    def user_id(self) -> str: ...
    @property
    def credential_id(self) -> str: ...
    @property
    def owner(self) -> str: ...


def audit(action: str, caller: Acting, *, subject: str) -> None:
    """Log an action that is not stored in the audit table."""
    actor = {"user_id": caller.user_id, "credential_id": caller.credential_id}
    _write({"action": action, "owner": caller.owner, "subject": subject, **actor})


def audit_entry(entry: "Entry | None") -> None:
    """Log an entry of the audit table. Does nothing for None."""
    if entry is None:
        return
    actor = {"user_id": entry.actor.user_id, "credential_id": entry.actor.credential_id}
    removed = {"artifacts": entry.artifacts, "size_bytes": entry.size_bytes}
    _write(
        {
            "action": entry.action.value,
            "owner": entry.owner,
            "subject": entry.subject,
            **actor,
            **removed,
        }
    )


def _write(line: dict[str, object]) -> None:
    logger().info("audit", extra=line)
