"""Authorize cache requests: the principals that handlers name in their signatures.

| Type | The principal |
|---|---|
| `CacheMember` | has a valid key or session token and, if the request names a team, is a member of it |
| `UsageReporter` | can report cache usage events: any permission on `artifacts` |
| `RunReporter` | can report runs: permission `artifacts: write`, and a role that writes; or a CI job that reads |
| `CausesReader` | can have misses explained: permission `artifacts: read` |
| `UsageReader` | can read usage figures: permission `artifacts: read`, even if the owner is blocked |
| `CacheReader` | can read artifacts: permission `artifacts: read` or `fetch`, and caching is not turned off |
| `CacheWriter` | can write artifacts: permission `artifacts: write`, a role that writes, and a quota that is not full |
| `AuditReader` | can read the audit, even if the owner is blocked: `teams: read`, owner or admin |
| `CachingOwner` | can disable and enable caching: permission `artifacts: manage`, and owner of the team |
| `CacheManager` | can list and delete artifacts, even if caching is off: `artifacts: manage`, owner or admin |

Keys have permissions. For a session, only the role in the team counts.

In a protected team, only trusted keys write what everyone reads. Every other credential writes a scope of its own
(docs/protection.md). Nothing in the request chooses the scope.
"""

from dataclasses import replace
from typing import Annotated

from larder.api_keys.models import FETCHES_ONLY, Permissions
from larder.artifacts.models import Wanted
from larder.artifacts.refusals import noting_refusals
from larder.errors import (
    OWNERS_ONLY,
    CachingDisabled,
    CachingOverLimit,
    CachingPaused,
    MissingPermission,
    MissingRole,
    PublicReadOnly,
    ReadOnly,
    SessionRequired,
    UnprovenCannotStore,
    UploadsForbidden,
)
from larder.settings import settings
from larder.teams.models import CachingStatus, People
from larder.teams.state import check_not_blocked
from larder.web.log import logger
from larder.web.parameters import (
    USER_AGENT,
    BearerToken,
    NamedTeam,
    TeamQuery,
    Token,
    hash_in_path,
    turbo_version,
)
from larder.web.powertools.resolver import Depends, Request
from larder.web.principals.prefetch import CachePrincipal, prefetch

_READS_ON = (2, 11, 11)
"""The first turbo that stops uploading after the code `forbidden`, with one line, and goes on reading. Older ones stop
reading, print a line for each upload, or send their token to Vercel (docs/clients/turbo.md#status-codes)."""

_SWITCHED_OFF = {
    CachingStatus.DISABLED: CachingDisabled,
    CachingStatus.PAUSED: CachingPaused,
}


def cache_member(token: BearerToken, team: NamedTeam) -> CachePrincipal:
    return _principal(token, team, Wanted(totals=True), {})


def usage_reporter(token: BearerToken, team: NamedTeam) -> CachePrincipal:
    principal = _principal(token, team, Wanted(), {})
    if not principal.artifact_actions:
        raise MissingPermission(
            "This token needs the permission artifacts: read or artifacts: write."
        )
    return principal


def run_reporter(token: BearerToken, team: NamedTeam) -> CachePrincipal:
    """Raises ReadOnly, MissingPermission."""
    principal = _principal(token, team, Wanted(), {})
    actions = principal.artifact_actions
    if "write" in actions:
        _require_writing_role(principal)
    elif "read" not in actions:
        raise MissingPermission("This token needs the permission artifacts: write.")
    elif not principal.is_ci_job:
        raise ReadOnly
    return principal


def causes_reader(token: BearerToken, team: NamedTeam) -> CachePrincipal:
    return _principal(token, team, Wanted(), {"artifacts": ("read",)})


def usage_reader(token: BearerToken, team: NamedTeam) -> CachePrincipal:
    needs = {"artifacts": ("read",)}
    return _principal(token, team, Wanted(totals=True), needs, even_blocked=True)


def audit_reader(token: BearerToken, team: NamedTeam) -> CachePrincipal:
    """Raises SessionRequired for a user's own audit: it has their sign-ins, and keys are in the environment of builds.

    Also raises MissingRole.
    """
    needs = {"teams": ("read",)}
    principal = _principal(token, team, Wanted(), needs, even_blocked=True)
    if principal.membership.role is not None and not principal.membership.role.manages_members:
        raise MissingRole
    if principal.team_id is None and principal.key is not None:
        raise SessionRequired
    return principal


def cache_reader(token: BearerToken, team: NamedTeam, request: Request) -> CachePrincipal:
    return reader(token, team, Wanted(hash_in_path(request)))


def reader(token: Token, team: TeamQuery, wanted: Wanted) -> CachePrincipal:
    principal = _principal(token, team, wanted, FETCHES_ONLY)
    _require_caching(principal)
    _require_trust(principal)
    if not principal.is_public:
        return principal
    return replace(
        principal, view=replace(principal.view, most_bytes=settings().inline_limit_bytes)
    )


def cache_writer(token: BearerToken, team: NamedTeam, request: Request) -> CachePrincipal:
    wanted = Wanted(hash_in_path(request), totals=True)
    try:
        principal = _principal(token, team, wanted, {"artifacts": ("write",)})
    except PublicReadOnly:
        if (turbo_version(USER_AGENT(request) or "") or ()) >= _READS_ON:
            raise UploadsForbidden from None
        raise
    with noting_refusals(principal.owner, principal.actor, now=principal.asked_at):
        _require_writer(principal)
    return principal


def _require_writer(principal: CachePrincipal) -> None:
    _require_writing_role(principal)
    _require_caching(principal)
    _require_trust(principal)
    if (
        principal.view.is_protected
        and principal.writes_as_user
        and _people(principal) is People.READ
    ):
        raise ReadOnly
    if principal.view.quota_bytes == 0:
        # Only an address that is not proven leads to a quota of 0.
        raise UnprovenCannotStore
    if principal.caching is CachingStatus.OVER_LIMIT:
        raise CachingOverLimit


def cache_manager(token: BearerToken, team: NamedTeam, request: Request) -> CachePrincipal:
    wanted = Wanted(hash_in_path(request), pending=True)
    principal = _principal(token, team, wanted, {"artifacts": ("manage",)})
    if principal.membership.role is not None and not principal.membership.role.manages_artifacts:
        raise MissingRole
    return principal


def caching_owner(token: BearerToken, team: NamedTeam) -> CachePrincipal:
    principal = _principal(token, team, Wanted(totals=True), {"artifacts": ("manage",)})
    if principal.membership.role is not None and not principal.membership.role.owns_team:
        raise MissingRole(OWNERS_ONLY)
    return principal


def _require_writing_role(principal: CachePrincipal) -> None:
    """Raises ReadOnly for viewers."""
    if principal.membership.role is not None and not principal.membership.role.writes_cache:
        raise ReadOnly


def _require_caching(principal: CachePrincipal) -> None:
    if error := _SWITCHED_OFF.get(principal.membership.state.caching):
        raise error


def _people(principal: CachePrincipal) -> People:
    return principal.membership.state.protection.people


def _require_trust(principal: CachePrincipal) -> None:
    """Raises MissingRole for a key that writes the shared scope if its user no longer may."""
    key, role = principal.key, principal.membership.role
    if not principal.view.is_protected or key is None or not key.may_trust:
        return
    if role is None or not role.names_trusted:
        raise MissingRole(
            "This key is trusted, but its user is no longer an owner or admin of the team."
        )


def _principal(
    token: Token,
    team: TeamQuery,
    wanted: Wanted,
    needs: Permissions,
    *,
    even_blocked: bool = False,
) -> CachePrincipal:
    if wanted.hash is not None:
        logger().append_keys(hash=wanted.hash)
    principal = prefetch(token, team, wanted, needs)
    if not even_blocked:
        check_not_blocked(principal.membership.state)
    return principal


CacheMember = Annotated[CachePrincipal, Depends(cache_member)]
UsageReporter = Annotated[CachePrincipal, Depends(usage_reporter)]
AuditReader = Annotated[CachePrincipal, Depends(audit_reader)]
RunReporter = Annotated[CachePrincipal, Depends(run_reporter)]
CausesReader = Annotated[CachePrincipal, Depends(causes_reader)]
UsageReader = Annotated[CachePrincipal, Depends(usage_reader)]
CacheReader = Annotated[CachePrincipal, Depends(cache_reader)]
CacheWriter = Annotated[CachePrincipal, Depends(cache_writer)]
CachingOwner = Annotated[CachePrincipal, Depends(caching_owner)]
CacheManager = Annotated[CachePrincipal, Depends(cache_manager)]
