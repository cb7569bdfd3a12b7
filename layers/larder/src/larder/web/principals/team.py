"""Authorize requests about the team in the path: the principals that handlers name in their signatures.

| Type | The principal |
|---|---|
| `TeamMember` | is a member of the team |
| `KeyReader` | has a role that manages members, and can list the keys of the team |
| `ScopeReader` | has a role that manages artifacts |
| `TeamEditor` | can make the changes to the team in the body |
| `TeamOwner` | owns the team |
| `TeamProtector` | has a session, not a key, and a role that protects the team |
| `MemberManager` | has a role that manages members |
| `MemberInviter` | has such a role, and can send invitations |
| `MemberRemover` | has such a role, or leaves the team |
| `TeamMaker` | can create a team |
| `RuleManager` | has a role that manages rules |
| `Joiner` | has a session, not a key. The value is the user |

While the operator blocks a team, nobody is its editor, owner or inviter. Members can still be listed, and can leave.

A key needs `teams: read` for `TeamMember` and `KeyReader`, `trust: manage` for `RuleManager`, `artifacts: manage` for
`ScopeReader`, and `teams: write` for the others. To set the caching status it needs `artifacts: manage`. CI keys have
none of these. Another team gets the same reply as one that does not exist.
"""

from dataclasses import dataclass
from typing import Annotated

from larder import clock
from larder.accounts.models import User
from larder.api_keys.models import Permissions
from larder.api_keys.principals import Principal
from larder.errors import (
    OWNERS_ONLY,
    EmailNotProven,
    MissingPermission,
    MissingRole,
    NotATeamMember,
    SessionRequired,
    TeamCreationDisabled,
    TeamNotFound,
)
from larder.rate_limits.models import TEAMS_MADE
from larder.rate_limits.service import take_if_counted
from larder.settings import settings
from larder.teams.members import find_membership
from larder.teams.models import Member, Team
from larder.teams.state import standing_of
from larder.web.bodies.teams import (
    InvitationToken,
    SentNewTeam,
    SentProtection,
    SentTeamChange,
)
from larder.web.log import logger
from larder.web.parameters import BearerToken, Token
from larder.web.powertools.resolver import Depends, Request
from larder.web.principals.cache import Authenticated, authenticate, check_not_blocked

_READ: Permissions = {"teams": ("read",)}
_WRITE: Permissions = {"teams": ("write",)}
_MANAGE_RULES: Permissions = {"trust": ("manage",)}
_MANAGE_ARTIFACTS: Permissions = {"artifacts": ("manage",)}


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamPrincipal(Principal):
    """A principal who is a member of the team in the path."""

    team: Team
    member: Member


def team_member(token: BearerToken, request: Request) -> TeamPrincipal:
    return _principal(token, _READ, request)


def key_reader(token: BearerToken, request: Request) -> TeamPrincipal:
    """Raises MissingRole."""
    return _manager(token, _READ, request)


def scope_reader(token: BearerToken, request: Request) -> TeamPrincipal:
    """Raises MissingRole."""
    principal = _principal(token, _MANAGE_ARTIFACTS, request)
    if not principal.member.role.manages_artifacts:
        raise MissingRole
    return principal


def team_editor(change: SentTeamChange, token: BearerToken, request: Request) -> TeamPrincipal:
    """Raises MissingRole, MissingPermission."""
    needs = {**(_WRITE if change.renames else {}), **(_MANAGE_ARTIFACTS if change.caching else {})}
    principal = _principal(token, needs, request)
    if not change.is_open_to(principal.member.role):
        raise MissingRole(None if change.caching is None else OWNERS_ONLY)
    check_not_blocked(principal.team.state)
    return principal


def team_owner(token: BearerToken, request: Request) -> TeamPrincipal:
    principal = _principal(token, _WRITE, request)
    if not principal.member.role.owns_team:
        raise MissingRole(OWNERS_ONLY)
    check_not_blocked(principal.team.state)
    return principal


def team_protector(_sent: SentProtection, token: BearerToken, request: Request) -> TeamPrincipal:
    """Raises SessionRequired, MissingRole. What an admin may change depends on the protection (`teams.protection`)."""
    principal = _principal(token, _WRITE, request)
    if principal.key is not None:
        raise SessionRequired
    if not principal.member.role.names_trusted:
        raise MissingRole
    check_not_blocked(principal.team.state)
    return principal


def member_manager(token: BearerToken, request: Request) -> TeamPrincipal:
    return _manager(token, _WRITE, request)


def rule_manager(token: BearerToken, request: Request) -> TeamPrincipal:
    principal = _principal(token, _MANAGE_RULES, request)
    if not principal.member.role.names_trusted:
        raise MissingRole
    check_not_blocked(principal.team.state)
    return principal


MemberManager = Annotated[TeamPrincipal, Depends(member_manager)]


def member_inviter(principal: MemberManager) -> TeamPrincipal:
    """Raises also SoftBlocked, PaymentMissing: a blocked team must not send emails."""
    check_not_blocked(principal.team.state)
    return principal


def member_remover(token: BearerToken, request: Request) -> TeamPrincipal:
    principal = _principal(token, _WRITE, request)
    leaves = request.path_parameters["uid"] == principal.member.user_id
    if not leaves and not principal.member.role.manages_members:
        raise MissingRole
    return principal


def team_maker(_new: SentNewTeam, token: BearerToken) -> Principal:
    """Refuses keys that are bound to a team, and users whose address is not proven: a team has a large quota.

    Also raises TeamCreationDisabled, EmailNotProven, TooManyRequests.
    """
    now = clock.now()
    principal = authenticate(token, _WRITE, now=now, checked_later=True)
    if principal.bound_to is not None:
        raise MissingPermission(
            "A key that is bound to a team cannot create teams. Sign in, or use a key without a team."
        )
    if settings().disable_team_creation and not principal.is_operator:
        raise TeamCreationDisabled
    standing = standing_of(principal.user_id, principal.user_id)
    principal.check_not_ended(standing)
    check_not_blocked(standing.state)
    if standing.user is None or not standing.user.proven:
        raise EmailNotProven
    take_if_counted(f"teams-made#{principal.user_id}", TEAMS_MADE, now=now)
    return principal


def joiner(_sent: InvitationToken, principal: Authenticated) -> User:
    """Only the invited user can join, so a key is refused. Raises SessionRequired."""
    if principal.user is None:
        raise SessionRequired
    return principal.user


def _manager(token: Token, needs: Permissions, request: Request) -> TeamPrincipal:
    principal = _principal(token, needs, request)
    if not principal.member.role.manages_members:
        raise MissingRole
    return principal


def _principal(token: Token, needs: Permissions, request: Request) -> TeamPrincipal:
    principal = authenticate(token, needs, now=clock.now(), checked_later=True)
    found = find_membership(
        request.path_parameters["id_or_slug"], principal.user_id, bound_to=principal.bound_to
    )
    try:
        principal.check_not_ended(found)
    except NotATeamMember:
        raise TeamNotFound from None
    logger().append_keys(user_id=principal.user_id, team_id=found.team.id)
    return TeamPrincipal(
        credential=principal.credential,
        user=principal.user,
        team=found.team,
        member=found.member,
    )


TeamMember = Annotated[TeamPrincipal, Depends(team_member)]
KeyReader = Annotated[TeamPrincipal, Depends(key_reader)]
ScopeReader = Annotated[TeamPrincipal, Depends(scope_reader)]
TeamEditor = Annotated[TeamPrincipal, Depends(team_editor)]
TeamOwner = Annotated[TeamPrincipal, Depends(team_owner)]
RuleManager = Annotated[TeamPrincipal, Depends(rule_manager)]
TeamProtector = Annotated[TeamPrincipal, Depends(team_protector)]
MemberInviter = Annotated[TeamPrincipal, Depends(member_inviter)]
MemberRemover = Annotated[TeamPrincipal, Depends(member_remover)]
TeamMaker = Annotated[Principal, Depends(team_maker)]
Joiner = Annotated[User, Depends(joiner)]
