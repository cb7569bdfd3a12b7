"""Who reports runs, and who deletes them and sees why they missed: owners and admins all, everyone else their own."""

from typing import Annotated, NamedTuple

from larder.actor import Actor
from larder.errors import ReadOnly
from larder.rate_limits.reports import Part, Sender
from larder.web.powertools.resolver import Depends
from larder.web.principals.authorize import UsageReader, UsageReporter
from larder.web.principals.prefetch import CachePrincipal
from larder.why.figures import Reader
from larder.why.models import Caller


def run_caller(principal: CachePrincipal, *, ci: str | None) -> Caller:
    """Runs are trusted if their reporter writes what everyone reads, and without protection if a CI reports them."""
    view, only_reads = principal.view, "write" not in principal.artifact_actions
    credential, person = principal.credential.id, principal.person_id
    rule = principal.key.rule_id if principal.key else None
    # Also in a team without protection, where the jobs that a rule does not trust write the shared scope.
    scope = view.scope if view.is_protected else rule and principal.own_scope
    part = Part.OTHERS if scope else Part.TRUSTED
    return Caller(
        sender=Sender(
            owner=principal.owner,
            part=part if principal.membership.team else Part.PEOPLE,
            writer=person or scope or rule or credential,
        ),
        compares_as=person or scope or credential,
        team=principal.membership.team,
        view=view,
        trusted=view.scope is None if view.is_protected else ci is not None,
        only_reads=only_reads,
        actor=principal.actor,
    )


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
