"""Who can delete reported runs: owners and admins all of them, and every reporter their own."""

from typing import Annotated, NamedTuple

from larder.actor import Actor
from larder.errors import ReadOnly
from larder.web.powertools.resolver import Depends
from larder.web.principals.authorize import UsageReporter


class Deleter(NamedTuple):
    """`only_of` is the reporter whose runs can be deleted, None for all. It has the user only for a session."""

    owner: str
    only_of: Actor | None


def run_deleter(principal: UsageReporter) -> Deleter:
    """Raises ReadOnly."""
    role, actions = principal.membership.role, principal.artifact_actions
    if "manage" in actions and (role is None or role.manages_artifacts):
        return Deleter(principal.owner, None)
    if "write" not in actions or (role is not None and not role.writes_cache):
        raise ReadOnly
    user_id = principal.user_id if principal.key is None else None
    return Deleter(principal.owner, Actor(principal.credential.id, user_id))


RunDeleter = Annotated[Deleter, Depends(run_deleter)]
