"""The state of an owner of artifacts: caching status, block and quota. An owner is a team or a user."""

from typing import TYPE_CHECKING

from larder.actor import Actor
from larder.errors import InvalidValue, PaymentMissing, SoftBlocked
from larder.teams import repository
from larder.teams.models import Block, CachingStatus, Membership, OwnerState

if TYPE_CHECKING:
    from larder.tables import Read, Write

MAX_REASON_LENGTH = 200
"""The longest reason for a block. Clients print it in one line."""

_BLOCKS = {Block.SOFT: SoftBlocked, Block.PAYMENT: PaymentMissing}


def read_state(owner: str) -> OwnerState:
    """The state of a team, or of a user's own cache."""
    return repository.read_state(owner)


def check_not_blocked(state: OwnerState) -> None:
    """Raises SoftBlocked, PaymentMissing."""
    if state.block is not None:
        raise _BLOCKS[state.block](state.block_reason)


def membership_of(owner: str, holder_id: str) -> Membership:
    """The relation of a user or a rule to an owner: a team or the user."""
    return repository.read_membership(owner, holder_id)


def reading_membership(owner: str, holder_id: str) -> "Read[Membership]":
    """The same, to be read together with other items."""
    return repository.reading_membership(owner, holder_id)


def quota_bytes(owner: str) -> int | None:
    """How much a team or user can store. None for no limit."""
    return repository.read_state(owner).quota_bytes


def change_state(
    owner: str,
    *,
    caching: CachingStatus | None = None,
    block: Block | None = None,
    block_reason: str | None = None,
    unblock: bool = False,
    quota_bytes: int | None = None,
    default_quota: bool = False,
    actor: Actor | None = None,
) -> OwnerState:
    """Change the given parts of the owner's state. `owner` is the id of a team or a user.

    Stores an audit entry for each part. `actor` is None for the operator at the command line.

    `block_reason` needs `block`, and clients get its text; a block without a reason removes the earlier reason.
    `unblock` lifts a block. `default_quota` returns to the deployment's quota. Raises InvalidValue for a team that
    does not exist, a quota below 1, a reason that is empty, too long or not printable, and the status `over_limit`,
    which follows from the quota.
    """
    if caching is CachingStatus.OVER_LIMIT:
        raise InvalidValue("caching", "over_limit follows from the quota; it cannot be set")
    if quota_bytes is not None and quota_bytes < 1:
        raise InvalidValue("quota", "must be a positive number of bytes")
    if block_reason is not None:
        _check_reason(block_reason, block)
    changes: dict[str, str | int | None] = {}
    acts: list[tuple[str, str]] = []
    if caching is not None:
        changes["caching"] = caching.value
        acts.append(("caching_set", caching.value))
    if unblock:
        changes |= {"block": None, "block_reason": None}
        acts.append(("block_lifted", owner))
    elif block is not None:
        changes |= {"block": block.value, "block_reason": block_reason}
        acts.append(("block_set", block.value))
    if default_quota:
        changes["quota_bytes"] = None
        acts.append(("quota_set", "default"))
    elif quota_bytes is not None:
        changes["quota_bytes"] = quota_bytes
        acts.append(("quota_set", str(quota_bytes)))
    entries = [audited_lazily(owner, action, subject, actor) for action, subject in acts]
    if changes and not repository.change_state(owner, changes, *entries):
        raise InvalidValue("team", "does not exist")
    return repository.read_state(owner)


def delete_personal_state(user_id: str) -> None:
    """Delete the caching status, block and quota of a deleted user."""
    repository.delete_personal_state(user_id)


def _check_reason(reason: str, block: Block | None) -> None:
    if block is None:
        raise InvalidValue("reason", "is only allowed together with a block")
    if not (1 <= len(reason) <= MAX_REASON_LENGTH and reason.isprintable() and reason.strip()):
        raise InvalidValue("reason", f"must hold 1 to {MAX_REASON_LENGTH} printable characters")


def audited_lazily(owner: str, action: str, subject: str, actor: Actor | None) -> "Write":
    """The write of an entry, as `audit.service.audited`. `action` is the value of an `Action`.

    Cache requests import this module too, and start faster without the audit.
    """
    from larder.audit.models import Action
    from larder.audit.service import audited

    return audited(owner, Action(action), subject, actor)
