"""Authorize requests about the team in the path: the principals that handlers name in their signatures.

Those that depend on the body are in `team_bodies`, so that the other endpoints start without pydantic.

| Type | The principal |
|---|---|
| `TeamMember` | is a member of the team |
| `KeyReader` | has a role that manages members, and can list the keys of the team |
| `ScopeReader` | has a role that manages artifacts |
| `TeamOwner` | owns the team |
| `MemberManager` | has a role that manages members |
| `MemberInviter` | has such a role, and can send invitations |
| `MemberRemover` | has such a role, or leaves the team |
| `RuleManager` | has a role that manages rules |

While the operator blocks a team, nobody is its owner, inviter or rule manager. Members can still be listed, and can
leave.

A key needs `teams: read` for `TeamMember` and `KeyReader`, `trust: manage` for `RuleManager`, `artifacts: manage` for
`ScopeReader`, and `teams: write` for the others. CI keys have none of these. Another team gets the same reply as one
that does not exist.
"""

from dataclasses import dataclass
from typing import Annotated

from larder import clock
from larder.api_keys.models import Permissions
from larder.api_keys.principals import Principal
from larder.errors import (
    OWNERS_ONLY,
    MissingRole,
    NotATeamMember,
    TeamNotFound,
)
from larder.teams.members import find_membership
from larder.teams.models import Member, Team
from larder.teams.state import check_not_blocked
from larder.web.log import logger
from larder.web.parameters import BearerToken, Token
from larder.web.powertools.resolver import Depends, Request
from larder.web.principals.authenticate import authenticate

_READ: Permissions = {"teams": ("read",)}
WRITE: Permissions = {"teams": ("write",)}
_MANAGE_RULES: Permissions = {"trust": ("manage",)}
MANAGE_ARTIFACTS: Permissions = {"artifacts": ("manage",)}


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamPrincipal(Principal):
    """A principal who is a member of the team in the path."""

    team: Team
    member: Member


def team_principal(token: Token, needs: Permissions, request: Request) -> TeamPrincipal:
    """The member of the team in the path that the token is of. A key has to have the permissions `needs`."""
    now = clock.now()
    principal = authenticate(token, needs, now=now, checked_later=True)
    found = find_membership(
        request.path_parameters["id_or_slug"], principal.user_id, bound_to=principal.bound_to
    )
    try:
        principal.check_not_ended(found, now=now)
    except NotATeamMember:
        raise TeamNotFound from None
    logger().append_keys(user_id=principal.user_id, team_id=found.team.id)
    return TeamPrincipal(
        credential=principal.credential,
        user=principal.user,
        team=found.team,
        member=found.member,
    )


def team_member(token: BearerToken, request: Request) -> TeamPrincipal:
    return team_principal(token, _READ, request)


def key_reader(token: BearerToken, request: Request) -> TeamPrincipal:
    """Raises MissingRole."""
    return _manager(token, _READ, request)


def scope_reader(token: BearerToken, request: Request) -> TeamPrincipal:
    """Raises MissingRole."""
    principal = team_principal(token, MANAGE_ARTIFACTS, request)
    if not principal.member.role.manages_artifacts:
        raise MissingRole
    return principal


def team_owner(token: BearerToken, request: Request) -> TeamPrincipal:
    principal = team_principal(token, WRITE, request)
    if not principal.member.role.owns_team:
        raise MissingRole(OWNERS_ONLY)
    check_not_blocked(principal.team.state)
    return principal


def member_manager(token: BearerToken, request: Request) -> TeamPrincipal:
    return _manager(token, WRITE, request)


def rule_manager(token: BearerToken, request: Request) -> TeamPrincipal:
    principal = team_principal(token, _MANAGE_RULES, request)
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
    principal = team_principal(token, WRITE, request)
    leaves = request.path_parameters["uid"] == principal.member.user_id
    if not leaves and not principal.member.role.manages_members:
        raise MissingRole
    return principal


def _manager(token: Token, needs: Permissions, request: Request) -> TeamPrincipal:
    principal = team_principal(token, needs, request)
    if not principal.member.role.manages_members:
        raise MissingRole
    return principal


TeamMember = Annotated[TeamPrincipal, Depends(team_member)]
KeyReader = Annotated[TeamPrincipal, Depends(key_reader)]
ScopeReader = Annotated[TeamPrincipal, Depends(scope_reader)]
TeamOwner = Annotated[TeamPrincipal, Depends(team_owner)]
RuleManager = Annotated[TeamPrincipal, Depends(rule_manager)]
MemberInviter = Annotated[TeamPrincipal, Depends(member_inviter)]
MemberRemover = Annotated[TeamPrincipal, Depends(member_remover)]
