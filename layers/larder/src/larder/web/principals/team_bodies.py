"""Authorize requests about teams by their body, too: the principals that handlers name in their signatures.

| Type | The principal |
|---|---|
| `TeamEditor` | can make the changes to the team in the body |
| `TeamProtector` | has a fresh session, not a key, and a role that protects the team |
| `RuleMaker` | is a `RuleManager` with a fresh session |
| `RuleChanger` | is a `RuleManager`, with a fresh session unless the change only disables the rule |
| `Inviter` | is a `MemberInviter`, with a fresh session to invite owners and admins |
| `RoleGiver` | is a `MemberManager`, with a fresh session to make owners and admins |
| `TeamMaker` | can create a team |
| `Joiner` | has a session, not a key. The value is the user |

All of them check the body first. While the operator blocks a team, nobody is its editor or protector.

A key needs `teams: write`. To set the caching status it needs `artifacts: manage`. CI keys have neither.
"""

from typing import Annotated

from larder import clock
from larder.accounts.models import User
from larder.accounts.team_invitations import InvitationWanted
from larder.api_keys.principals import Principal
from larder.errors import (
    OWNERS_ONLY,
    EmailNotProven,
    MissingPermission,
    MissingRole,
    SessionRequired,
    TeamCreationDisabled,
)
from larder.rate_limits.models import TEAMS_MADE
from larder.rate_limits.service import take_if_counted
from larder.settings import settings
from larder.teams.models import Role
from larder.teams.protection import ProtectionChange
from larder.teams.state import check_not_blocked, membership_of
from larder.teams.teams import TeamChange
from larder.trust.models import NewRule, RuleChange
from larder.web.bodies.rules import new_rule, rule_change
from larder.web.bodies.teams import (
    NewTeam,
    invitation_token,
    new_team,
    sent_invitations,
    sent_protection,
    sent_role,
    team_change,
)
from larder.web.parameters import BearerToken
from larder.web.powertools.resolver import Depends, Request
from larder.web.principals.authenticate import Authenticated, authenticate
from larder.web.principals.session import check_fresh
from larder.web.principals.team import (
    MANAGE_ARTIFACTS,
    WRITE,
    MemberInviter,
    MemberManager,
    RuleManager,
    TeamPrincipal,
    team_principal,
)


def team_editor(
    change: Annotated[TeamChange, Depends(team_change)], token: BearerToken, request: Request
) -> TeamPrincipal:
    """Raises MissingRole, MissingPermission, TooManyRequests: a new slug counts like a new team."""
    needs = {**(WRITE if change.renames else {}), **(MANAGE_ARTIFACTS if change.caching else {})}
    principal = team_principal(token, needs, request)
    if not change.is_open_to(principal.member.role):
        raise MissingRole(None if change.caching is None else OWNERS_ONLY)
    check_not_blocked(principal.team.state)
    if change.slug not in (None, *principal.team.slugs):
        take_if_counted(f"teams-made#{principal.user_id}", TEAMS_MADE, now=clock.now())
    return principal


def team_protector(
    _sent: Annotated[ProtectionChange, Depends(sent_protection)],
    token: BearerToken,
    request: Request,
) -> TeamPrincipal:
    """Raises SessionRequired, MissingRole, SessionNotFresh.

    What an admin may change depends on the protection (`teams.protection`).
    """
    principal = team_principal(token, WRITE, request)
    if principal.key is not None:
        raise SessionRequired
    if not principal.member.role.names_trusted:
        raise MissingRole
    check_not_blocked(principal.team.state)
    check_fresh(principal)
    return principal


def rule_maker(
    _new: Annotated[NewRule, Depends(new_rule)], principal: RuleManager
) -> TeamPrincipal:
    """Raises SessionRequired, SessionNotFresh."""
    check_fresh(principal)
    return principal


def rule_changer(
    change: Annotated[RuleChange, Depends(rule_change)], principal: RuleManager
) -> TeamPrincipal:
    """Raises SessionRequired, SessionNotFresh. A key, or any session, can disable a rule in an emergency."""
    if change != RuleChange(enabled=False):
        check_fresh(principal)
    return principal


def inviter(
    wanted: Annotated[list[InvitationWanted], Depends(sent_invitations)], principal: MemberInviter
) -> TeamPrincipal:
    """Raises SessionRequired, SessionNotFresh."""
    if any(one.role.names_trusted for one in wanted):
        check_fresh(principal)
    return principal


def role_giver(
    role: Annotated[Role, Depends(sent_role)], principal: MemberManager
) -> TeamPrincipal:
    """Raises SessionRequired, SessionNotFresh."""
    if role.names_trusted:
        check_fresh(principal)
    return principal


def team_maker(_new: Annotated[NewTeam, Depends(new_team)], token: BearerToken) -> Principal:
    """Refuses keys that are bound to a team, and users whose address is not proven: a team has a large quota.

    Also raises TeamCreationDisabled, EmailNotProven, TooManyRequests.
    """
    now = clock.now()
    principal = authenticate(token, WRITE, now=now, checked_later=True)
    if principal.bound_to is not None:
        raise MissingPermission(
            "A key that is bound to a team cannot create teams. Sign in, or use a key without a team."
        )
    if settings().disable_team_creation and not principal.is_operator:
        raise TeamCreationDisabled
    membership = membership_of(principal.user_id, principal.user_id)
    principal.check_not_ended(membership, now=now)
    check_not_blocked(membership.state)
    if membership.user is None or not membership.user.proven:
        raise EmailNotProven
    take_if_counted(f"teams-made#{principal.user_id}", TEAMS_MADE, now=now)
    return principal


def joiner(_sent: Annotated[str, Depends(invitation_token)], principal: Authenticated) -> User:
    """Only the invited user can join, so a key is refused. Raises SessionRequired."""
    if principal.user is None:
        raise SessionRequired
    return principal.user


TeamEditor = Annotated[TeamPrincipal, Depends(team_editor)]
TeamProtector = Annotated[TeamPrincipal, Depends(team_protector)]
RuleMaker = Annotated[TeamPrincipal, Depends(rule_maker)]
RuleChanger = Annotated[TeamPrincipal, Depends(rule_changer)]
Inviter = Annotated[TeamPrincipal, Depends(inviter)]
RoleGiver = Annotated[TeamPrincipal, Depends(role_giver)]
TeamMaker = Annotated[Principal, Depends(team_maker)]
Joiner = Annotated[User, Depends(joiner)]
