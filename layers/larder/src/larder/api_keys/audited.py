"""The audit entries of keys. Cache requests do not import this module, because they start faster without it."""

from typing import TYPE_CHECKING

from larder.actor import Actor
from larder.api_keys.models import ApiKey
from larder.audit.models import Action
from larder.audit.service import audited

if TYPE_CHECKING:
    from larder.tables import Write


def created(key: ApiKey, actor: Actor | None) -> "list[Write]":
    return _entries(Action.KEY_CREATED, key, actor)


def rotated(old: ApiKey, new: ApiKey, actor: Actor | None) -> "list[Write]":
    return _entries(Action.KEY_ROTATED, old, actor, successor=new.id)


def changed(key: ApiKey, actor: Actor | None) -> "list[Write]":
    return _entries(Action.KEY_CHANGED, key, actor)


def adopted(key: ApiKey, actor: Actor | None) -> "list[Write]":
    """`key` is the key as it was, with its user."""
    return _entries(Action.KEY_ADOPTED, key, actor)


def deleted(key: ApiKey, actor: Actor | None) -> "list[Write]":
    return _entries(Action.KEY_DELETED, key, actor)


def _entries(action: Action, key: ApiKey, actor: Actor | None, **details: str) -> "list[Write]":
    """One for the user of the key, if it has one, and one for its team, so that each of them finds it."""
    of_user = [key.user_id] if key.has_user else []
    owners = of_user if key.team_id is None else [*of_user, key.team_id]
    return [
        audited(owner, action, key.id, actor, name=key.name or key.start, details=details)
        for owner in owners
    ]
