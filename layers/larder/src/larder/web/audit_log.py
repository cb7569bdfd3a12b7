"""The lines of the log that tell who did what. Ids only."""

from typing import TYPE_CHECKING, Protocol

from larder.web.log import logger

if TYPE_CHECKING:
    from larder.audit.models import Entry


class Acting(Protocol):
    """Who acts, with which key or session, and for which team or person."""

    @property
    def user_id(self) -> str: ...
    @property
    def credential_id(self) -> str: ...
    @property
    def owner(self) -> str: ...


def audit(action: str, caller: Acting, *, subject: str) -> None:
    """A line for an act that somebody may be asked about, and that no table of the audit keeps."""
    who = {"user_id": caller.user_id, "credential_id": caller.credential_id}
    _write({"action": action, "owner": caller.owner, "subject": subject, **who})


def audit_entry(entry: "Entry | None") -> None:
    """The line that tells the same as an entry of the audit; none, when nothing was done."""
    if entry is None:
        return
    who = {"user_id": entry.actor.user_id, "credential_id": entry.actor.credential_id}
    removed = {"artifacts": entry.artifacts, "size_bytes": entry.size_bytes}
    _write(
        {
            "action": entry.action.value,
            "owner": entry.owner,
            "subject": entry.subject,
            **who,
            **removed,
        }
    )


def _write(line: dict[str, object]) -> None:
    logger().info("audit", extra=line)
