"""Log lines that record which user did what. They contain ids, and domains, only."""

from typing import TYPE_CHECKING

from larder.actor import Actor
from larder.metrics import counted
from larder.web.log import logger

if TYPE_CHECKING:
    from larder.audit.models import Entry
    from larder.sso.refusals import SignInRefused


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


def log_refusal(refused: "SignInRefused") -> None:
    """Log a sign-in with a provider that ended without a session, with the domain of the address and never the address.

    Only a valid state says which provider it was: strangers can put any name into the path.
    """
    provider = refused.pending.provider_id if refused.pending else "unknown"
    address = refused.identity.address if refused.identity else None
    line = {
        "code": refused.code.value,
        "provider": provider,
        "reason": refused.reason,
        "domain": address.rpartition("@")[2] if address else None,
        **counted("SignInFailures", [], ["provider", "reason"]),
    }
    logger().info("sign-in refused", extra=line)


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
