"""Who can delete reported runs, and see why they missed: owners and admins all of them, everyone else their own."""

from typing import Annotated, NamedTuple

from larder.actor import Actor
from larder.errors import ReadOnly
from larder.runs.causes import Reader
from larder.web.powertools.resolver import Depends
from larder.web.principals.authorize import UsageReader, UsageReporter


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


def explanation_reader(principal: UsageReader) -> Reader:
    """Whose explanations the caller sees. They name files and variables of what a job builds."""
    role = principal.membership.role
    manages = "manage" in principal.artifact_actions and (role is None or role.manages_artifacts)
    return Reader(sees_all=manages, scope=principal.view.scope)


ExplanationReader = Annotated[Reader, Depends(explanation_reader)]
RunDeleter = Annotated[Deleter, Depends(run_deleter)]
