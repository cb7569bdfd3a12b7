"""What explanations need to know about a principal."""

from larder.explanations.models import Caller
from larder.web.principals.prefetch import CachePrincipal


def run_caller(principal: CachePrincipal, *, ci: str | None) -> Caller:
    """Runs are trusted if their reporter writes what everyone reads, and without protection if a CI reports them."""
    view, only_reads = principal.view, "write" not in principal.artifact_actions
    return Caller(
        owner=principal.owner,
        team=principal.membership.team,
        view=view,
        trusted=view.scope is None if view.is_protected else ci is not None,
        only_reads=only_reads,
        actor=principal.actor,
    )
