"""Audit entries for modules that cache requests import too. Those start faster without the audit."""

from typing import TYPE_CHECKING

from larder.actor import Actor

if TYPE_CHECKING:
    from larder.tables import Write


def audited_lazily(owner: str, action: str, subject: str, actor: Actor | None) -> "Write":
    """The write of an entry, as `audit.service.audited`. `action` is the value of an `Action`."""
    from larder.audit.models import Action
    from larder.audit.service import audited

    return audited(owner, Action(action), subject, actor)
