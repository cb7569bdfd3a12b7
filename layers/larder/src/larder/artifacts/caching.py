"""The caching status, and what a request to the cache reads of its owner. Every function of the cache imports this.

`reads` and `uploads` have the rest of what builds do.
"""

from typing import TYPE_CHECKING, TypeVar

from larder.actor import Actor
from larder.artifacts.models import RequestItems, Totals, Wanted
from larder.artifacts.repository import index
from larder.settings import settings
from larder.teams.models import CachingStatus, OwnerState
from larder.teams.state import change_state

if TYPE_CHECKING:
    from larder.tables import Read

T = TypeVar("T")


def read_with_membership(
    owner: str, holder_id: str, wanted: Wanted, *, own_scope: str | None = None
) -> RequestItems:
    """The role or the rule, the owner's state, and what the request wants: in one batch.

    With `own_scope`, also the entry of the hash in that scope.
    """
    return index.read_with_membership(owner, holder_id, wanted, own_scope=own_scope)


def read_with_credential(
    credential: "Read[T]",
    owner: str,
    holder_id: str,
    wanted: Wanted,
    *,
    own_scope: str | None = None,
) -> tuple[T, RequestItems]:
    """The same, and the key or session of the request, in the same batch."""
    return index.read_with_credential(credential, owner, holder_id, wanted, own_scope=own_scope)


def caching_status(state: OwnerState, totals: Totals) -> CachingStatus:
    """The status that the owner set, or `over_limit` if caching is on, the quota is full, and Larder does not evict."""
    used_up = state.quota_bytes is not None and totals.size_bytes >= state.quota_bytes
    used_up = used_up and not settings().evicts
    if state.caching is CachingStatus.ENABLED and used_up:
        return CachingStatus.OVER_LIMIT
    return state.caching


def set_caching(owner: str, caching: CachingStatus, totals: Totals, *, by: Actor) -> CachingStatus:
    """Enable, pause or disable caching from the next request on. Returns the status that clients see then.

    Raises InvalidValue for `over_limit` and for a team that does not exist.
    """
    return caching_status(change_state(owner, caching=caching, actor=by), totals)
