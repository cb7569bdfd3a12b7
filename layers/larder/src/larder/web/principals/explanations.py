"""What explanations need to know about a principal."""

from larder.explanations.models import Caller
from larder.rate_limits.reports import Part, Sender
from larder.web.principals.prefetch import CachePrincipal


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
