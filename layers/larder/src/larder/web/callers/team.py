"""Authorize requests about the team in the path: the caller types that handlers name in their signatures.

| Type | The caller |
|---|---|
| `TeamMember` | is a member of the team |
| `TeamEditor` | can make the changes to the team in the body |
| `TeamOwner` | owns the team |
| `MemberManager` | has a role that manages members |
| `MemberInviter` | has such a role, and can send invitations |
| `MemberRemover` | has such a role, or leaves the team |
| `TeamMaker` | can create a team |
| `Joiner` | has a session, not a key |

While the operator blocks a team, nobody is its editor, owner or inviter. Members can still be listed, and can leave.

A key needs `teams: read` for `TeamMember` and `teams: write` for the others. To set the caching status it needs
`artifacts: manage`. CI keys have none of these. Another team gets the same reply as one that does not exist.
"""

from dataclasses import dataclass
from typing import Annotated

from aws_lambda_powertools.event_handler import Request
from aws_lambda_powertools.event_handler.depends import Depends

from larder import clock
from larder.accounts.models import User
from larder.accounts.service import is_operator
from larder.api_keys.models import Permissions
from larder.errors import MissingPermission, MissingRole, SessionRequired, TeamCreationDisabled
from larder.rate_limits.models import TEAMS_MADE
from larder.rate_limits.service import take_if_counted
from larder.settings import settings
from larder.teams.models import Actor, Member, Team
from larder.teams.service import find_membership, read_state
from larder.web.bodies.teams import InvitationToken, SentNewTeam, SentTeamChange
from larder.web.callers.cache import Holder, TokenHolder, check_not_blocked, holder_with
from larder.web.log import logger
from larder.web.parameters import BearerToken, Token

_READ: Permissions = {"teams": ("read",)}
_WRITE: Permissions = {"teams": ("write",)}
_SET_CACHING: Permissions = {"artifacts": ("manage",)}


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamCaller:
    """A member of the team in the path. `credential_id` is the id of the key or of the session."""

    credential_id: str
    team: Team
    member: Member

    @property
    def user_id(self) -> str:
        return self.member.user_id

    @property
    def owner(self) -> str:
        return self.team.id

    @property
    def actor(self) -> Actor:
        return Actor(user_id=self.member.user_id, role=self.member.role)


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonCaller:
    """A caller who acts for themselves, not for a team."""

    user_id: str
    credential_id: str

    @property
    def owner(self) -> str:
        return self.user_id


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedInCaller(PersonCaller):
    """The same, with a session."""

    user: User


def team_member(token: BearerToken, request: Request) -> TeamCaller:
    return _caller(token, _READ, request)


def team_editor(change: SentTeamChange, token: BearerToken, request: Request) -> TeamCaller:
    """Raises MissingRole, MissingPermission."""
    needs = {**(_WRITE if change.renames else {}), **(_SET_CACHING if change.caching else {})}
    caller = _caller(token, needs, request)
    if not change.is_open_to(caller.member.role):
        raise MissingRole
    check_not_blocked(caller.team.state)
    return caller


def team_owner(token: BearerToken, request: Request) -> TeamCaller:
    caller = _caller(token, _WRITE, request)
    if not caller.member.role.owns_team:
        raise MissingRole
    check_not_blocked(caller.team.state)
    return caller


def member_manager(token: BearerToken, request: Request) -> TeamCaller:
    caller = _caller(token, _WRITE, request)
    if not caller.member.role.manages_members:
        raise MissingRole
    return caller


MemberManager = Annotated[TeamCaller, Depends(member_manager)]


def member_inviter(caller: MemberManager) -> TeamCaller:
    """Raises also SoftBlocked, PaymentMissing: a blocked team must not send emails."""
    check_not_blocked(caller.team.state)
    return caller


def member_remover(token: BearerToken, request: Request) -> TeamCaller:
    caller = _caller(token, _WRITE, request)
    leaves = request.path_parameters["uid"] == caller.member.user_id
    if not leaves and not caller.member.role.manages_members:
        raise MissingRole
    return caller


def team_maker(_new: SentNewTeam, token: BearerToken) -> PersonCaller:
    """Refuses keys that are bound to a team. Also raises TeamCreationDisabled, TooManyRequests."""
    holder = holder_with(token, _WRITE)
    if holder.team_id is not None:
        raise MissingPermission
    if settings().disable_team_creation and not _is_operator(holder):
        raise TeamCreationDisabled
    check_not_blocked(read_state(holder.user_id))
    take_if_counted(f"teams-made#{holder.user_id}", TEAMS_MADE, now=clock.now())
    return PersonCaller(user_id=holder.user_id, credential_id=holder.credential.id)


def joiner(_sent: InvitationToken, holder: TokenHolder) -> SignedInCaller:
    """Only the invited user can join, so a key is refused. Raises SessionRequired."""
    if holder.user is None:
        raise SessionRequired
    return SignedInCaller(
        user_id=holder.user_id, credential_id=holder.credential.id, user=holder.user
    )


def _is_operator(holder: Holder) -> bool:
    """False for a key: keys are in the environment of builds, so they never get an operator's rights."""
    return holder.user is not None and is_operator(holder.user)


def _caller(token: Token, needs: Permissions, request: Request) -> TeamCaller:
    holder = holder_with(token, needs)
    found = find_membership(
        request.path_parameters["id_or_slug"], holder.user_id, bound_to=holder.team_id
    )
    logger().append_keys(user_id=holder.user_id, team_id=found.team.id)
    return TeamCaller(credential_id=holder.credential.id, team=found.team, member=found.member)


TeamMember = Annotated[TeamCaller, Depends(team_member)]
TeamEditor = Annotated[TeamCaller, Depends(team_editor)]
TeamOwner = Annotated[TeamCaller, Depends(team_owner)]
MemberInviter = Annotated[TeamCaller, Depends(member_inviter)]
MemberRemover = Annotated[TeamCaller, Depends(member_remover)]
TeamMaker = Annotated[PersonCaller, Depends(team_maker)]
Joiner = Annotated[SignedInCaller, Depends(joiner)]
