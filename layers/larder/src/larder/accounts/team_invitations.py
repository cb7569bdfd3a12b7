"""Invite people to a team by email, and accept invitations as a user."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from larder.accounts.email_jobs import InviteToTeam, MailContext, send_later
from larder.accounts.models import User
from larder.accounts.service import find_user
from larder.actor import Actor
from larder.addresses import canonical, parse_address
from larder.errors import EmailNotProven, InvalidValue, InvitationForAnother
from larder.hashing import hash_key
from larder.invitations import service as invitations
from larder.invitations.models import Invitation, Invitee
from larder.rate_limits.models import INVITATIONS, INVITATIONS_TO_ONE
from larder.rate_limits.service import take_if_counted
from larder.sso.models import IdentityProvider
from larder.sso.service import domain_of_address, find_provider
from larder.teams.models import Member, Role, Team


@dataclass(frozen=True, slots=True, kw_only=True)
class InvitationWanted:
    """A person to invite, by the address from the request, and the role to give them."""

    email: str
    role: Role


@dataclass(frozen=True, slots=True, kw_only=True)
class InvitationPreview:
    """An open invitation. `invited_by` is the address of the member who made it, None for the operator.

    It has no names of people and teams, because these choose them freely, and could write a message into them.
    `provider` has the domain of the invited address. `requires_provider` says that a password is refused for it.
    """

    slug: str
    role: Role
    invited_by: str | None
    expires_at: datetime
    provider: IdentityProvider | None
    requires_provider: bool


def send_invitations(
    team_id: str,
    wanted: Sequence[InvitationWanted],
    mail_context: MailContext,
    *,
    by: Member | None,
    actor: Actor | None = None,
    now: datetime,
) -> list[Invitation]:
    """Invite people and send an email to each: all of them or none. `by` is None for the operator.

    Addresses are not looked up, so neither the reply nor its timing shows which ones have an account or are members.
    Inviting an address again replaces the invitation and sends another email. Raises InvalidEmail, InvalidValue,
    MissingRole, InvitationLimitReached, TooManyRequests, TeamNotFound, TryAgain.
    """
    invitees = [
        Invitee(
            email=parse_address(invitation.email),
            address=canonical(invitation.email),
            role=invitation.role,
        )
        for invitation in wanted
    ]
    if len({invitee.address for invitee in invitees}) < len(invitees):
        raise InvalidValue("email", "must not name the same address twice")
    if by is not None:
        for invitee in invitees:
            _count(team_id, invitee, by, now)
    created = invitations.create_invitations(team_id, invitees, by=by, actor=actor, now=now)
    for invitation in created:
        send_later(
            InviteToTeam(
                email=invitation.email,
                team_id=team_id,
                invitation_id=invitation.id,
                mail_context=mail_context,
            )
        )
    return created


def preview_invitation(token: str, *, now: datetime) -> InvitationPreview:
    """What the holder of an invitation's token can see before they sign in. Raises InvitationNotFound."""
    invitation = invitations.find_by_token(token, now=now)
    team = invitations.team_of(invitation)
    author = None if invitation.invited_by is None else find_user(invitation.invited_by)
    domain = domain_of_address(invitation.address)
    return InvitationPreview(
        slug=team.slug,
        role=invitation.role,
        invited_by=None if author is None else author.email,
        expires_at=invitation.expires_at,
        provider=None if domain is None else find_provider(domain.provider_id),
        requires_provider=domain is not None and domain.requires_provider(invitation.address),
    )


def join_team(
    user: User, token: str, *, actor: Actor | None = None, now: datetime
) -> tuple[Team, Role]:
    """Accept the invitation with this token. Returns the team and the user's role in it.

    Anyone who has the link can sign up with the invited address, so the user must have proven it. Raises
    InvitationNotFound, InvitationForAnother if it was sent to another address than the user's, and EmailNotProven.
    """
    invitation = invitations.find_by_token(token, now=now)
    if canonical(user.email) != invitation.address:
        raise InvitationForAnother
    if not user.proven:
        raise EmailNotProven
    return invitations.accept(invitation, user.id, actor=actor, now=now)


def _count(team_id: str, invitee: Invitee, by: Member, now: datetime) -> None:
    """Count an invitation against the rate limits, because it sends unrequested email. Raises TooManyRequests."""
    take_if_counted(f"invitations-by#{by.user_id}", INVITATIONS, now=now)
    to_one = f"invitations-to#{team_id}#{hash_key(invitee.address)}"
    take_if_counted(to_one, INVITATIONS_TO_ONE, now=now)
