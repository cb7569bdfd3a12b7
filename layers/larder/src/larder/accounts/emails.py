"""Make the links for account email, and send them or call the integrator's functions with them."""

import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Any
from urllib.parse import quote

from larder.accounts import link_tokens, password_resets, service
from larder.accounts.email_jobs import (
    AccessEnds,
    ChangeEmail,
    ConfirmEmailChange,
    EmailJob,
    EmailWasChanged,
    InviteToTeam,
    KeyNeverExpires,
    MakerLeft,
    PasswordWasReset,
    ProviderLinked,
    RequestDescription,
    ResetPassword,
    RulePinned,
    SignUpAgain,
    TeamProtected,
    TrustGiven,
    VerifyEmail,
)
from larder.accounts.models import WARNED_BEFORE, User
from larder.accounts.user_json import user_json
from larder.addresses import canonical, parse_address
from larder.clock import from_ms
from larder.errors import TooManyRequests
from larder.extensions import Hook, hook
from larder.hashing import hash_key
from larder.invitations import service as invitations
from larder.mail import service as mail
from larder.mail import templates
from larder.mail.models import Message
from larder.metrics import count
from larder.rate_limits.models import MAIL_IN_A_DAY, MAIL_IN_AN_HOUR
from larder.rate_limits.service import take
from larder.settings import settings
from larder.teams.teams import find_team

_VERIFIED_PAGE = "/verified"
"""Larder's own page, for links without a callback URL."""

_UNREQUESTED = (VerifyEmail, SignUpAgain, ChangeEmail, InviteToTeam)


class Outcome(StrEnum):
    SENT = "sent"
    HANDED_OVER = "handed over"
    UNKNOWN_ADDRESS = "unknown address"
    VERIFIED_ALREADY = "verified already"
    TAKEN_ADDRESS = "taken address"
    UNKNOWN_USER = "unknown user"
    UNVERIFIED_ADDRESS = "unverified address"
    OTHER_ADDRESS = "user has another address"
    ACCESS_GOES_ON = "access does not end soon"
    OTHER_CREDENTIALS = "password or sessions ended"
    NO_INVITATION = "no such invitation any more"
    TOO_MANY = "too many emails to this address"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """The outcome of a job, without addresses. `message_id` is the id in SES or in the outbox."""

    outcome: Outcome
    user_id: str | None = None
    message_id: str | None = None


class IntegratorFailed(Exception):
    """The integrator's function raised an error. Names its type and line only: its message may hold the link."""


def deliver(job: EmailJob, *, now: datetime) -> Delivery:
    """Send the email of a job, if it has a recipient who has not had too many. Raises TryAgain, MailRefused,
    IntegratorFailed.

    A job that comes twice sends two messages. Both links work: users can follow a verification link again, and the
    first reset link that is used ends the others.
    """
    try:
        return _deliver(job, now)
    except TooManyRequests:
        count("MailDropped", kind=job.kind)
        return Delivery(outcome=Outcome.TOO_MANY)


def _deliver(job: EmailJob, now: datetime) -> Delivery:
    match job:
        case ConfirmEmailChange():
            return _send_confirmation_link(job, now)
        case ChangeEmail():
            return _send_change_link(job, now)
        case InviteToTeam():
            return _send_invitation(job, now)
        case ProviderLinked():
            return _notify_of_provider(job, now)
        case KeyNeverExpires():
            return _notify_of_key(job, now)
        case AccessEnds():
            return _warn_of_end(job, now)
        case RulePinned():
            return _notify_of_rule(job, now)
        case TeamProtected():
            return _notify_of_protection(job, now)
        case TrustGiven():
            return _notify_of_trust(job, now)
        case MakerLeft():
            return _notify_of_departure(job, now)
        case EmailWasChanged():
            return _notify_previous_address(job, now)
        case _:
            user = service.find_user_by_email(job.email)
            if user is None:
                return Delivery(outcome=Outcome.UNKNOWN_ADDRESS)
            return _deliver_to(user, job, now)


def _deliver_to(
    user: User, job: VerifyEmail | ResetPassword | SignUpAgain | PasswordWasReset, now: datetime
) -> Delivery:
    match job:
        case VerifyEmail():
            return _send_verification_link(user, job, now)
        case ResetPassword():
            return _send_reset_link(user, job, now)
        case SignUpAgain():
            _count(job, user.email, now)
            return _send(templates.sign_up_again, user, job.mail_context.base_url, now)
        case PasswordWasReset():
            return _notify_of_reset(user, job, now)


def _send_verification_link(user: User, job: VerifyEmail, now: datetime) -> Delivery:
    if user.proven or (user.email_verified and not job.by_user):
        return Delivery(outcome=Outcome.VERIFIED_ALREADY, user_id=user.id)
    _count(job, user.email, now)
    token = link_tokens.issue_verification_token(user, now=now)
    return _send_token(templates.verify_email, user, token, job, now)


def _send_confirmation_link(job: ConfirmEmailChange, now: datetime) -> Delivery:
    """Send a link to the current address. A thief of a session cannot read the user's mail."""
    user = _user_who_changes(job, job.new_email)
    if isinstance(user, Delivery):
        return user
    if user.email != job.email:
        return Delivery(outcome=Outcome.OTHER_ADDRESS, user_id=user.id)
    _count(job, user.email, now)
    token = link_tokens.issue_confirmation_token(
        user, new_email=job.new_email, callback_url=job.callback_url, now=now
    )
    url = _verification_url(token, job, now)
    if own := hook("send_verification_email"):
        data = {
            "user": user_json(user),
            "newEmail": job.new_email,
            "url": url,
            "token": token,
        }
        return _call(own, data, user, job.mail_context.request)
    template = partial(templates.confirm_email_change, new_email=job.new_email)
    return _send(template, user, url, now)


def _send_change_link(job: ChangeEmail, now: datetime) -> Delivery:
    """Send a link to the new address, because only its owner can confirm it."""
    user = _user_who_changes(job, job.email)
    if isinstance(user, Delivery):
        return user
    new_email = parse_address(job.email)
    _count(job, new_email, now)
    token = link_tokens.issue_verification_token(user, new_email=new_email, now=now)
    return _send_token(templates.change_email, replace(user, email=new_email), token, job, now)


def _user_who_changes(job: ChangeEmail | ConfirmEmailChange, new_email: str) -> User | Delivery:
    """The user whose address can change to `new_email`, or why nothing is sent."""
    user = service.find_user(job.user_id)
    if user is None:
        return Delivery(outcome=Outcome.UNKNOWN_USER)
    if job.credentials != link_tokens.credentials_of(user):
        # A job can wait for a day, but the change must end with the sessions of the user who asked for it.
        return Delivery(outcome=Outcome.OTHER_CREDENTIALS, user_id=user.id)
    if service.find_user_by_email(new_email) is not None:
        return Delivery(outcome=Outcome.TAKEN_ADDRESS, user_id=user.id)
    return user


def _send_token(
    template: Callable[..., Message],
    user: User,
    token: str,
    job: VerifyEmail | ChangeEmail,
    now: datetime,
) -> Delivery:
    url = _verification_url(token, job, now)
    if own := hook("send_verification_email"):
        return _hand_over(own, user, url, token, job.mail_context.request)
    return _send(template, user, url, now)


def _verification_url(
    token: str, job: VerifyEmail | ChangeEmail | ConfirmEmailChange, now: datetime
) -> str:
    callback = _callback(job.callback_url, _VERIFIED_PAGE, now)
    return f"{job.mail_context.base_url}/api/auth/verify-email?token={token}&{callback}"


def _send_reset_link(user: User, job: ResetPassword, now: datetime) -> Delivery:
    _count(job, user.email, now)
    if provider := service.managing_provider(user):
        # A password would not work.
        template = partial(templates.sign_in_with_provider, provider=provider.name)
        return _send(template, user, f"{job.mail_context.base_url}/sign-in", now)
    token = password_resets.issue_reset_token(user, now=now)
    callback = _callback(job.callback_url, "", now)
    url = f"{job.mail_context.base_url}/api/auth/reset-password/{token}?{callback}"
    if own := hook("send_reset_password"):
        return _hand_over(own, user, url, token, job.mail_context.request)
    return _send(templates.reset_password, user, url, now)


def _send_invitation(job: InviteToTeam, now: datetime) -> Delivery:
    """Send a link to the address, which need not have an account: the recipient can sign up to join."""
    invitation = invitations.find(job.team_id, canonical(job.email), job.invitation_id, now=now)
    team = None if invitation is None else find_team(job.team_id)
    if invitation is None or team is None:
        return Delivery(outcome=Outcome.NO_INVITATION)
    _count(job, invitation.email, now)
    token = invitations.issue_token(invitation)
    url = f"{job.mail_context.base_url}/join?token={token}"
    if own := hook("send_team_invitation"):
        data = {
            "email": invitation.email,
            "url": url,
            "token": token,
            "team": {"id": team.id, "slug": team.slug, "name": team.name},
            "role": invitation.role.value,
        }
        return _call(own, data, None, job.mail_context.request)
    message = templates.team_invitation(
        to=invitation.email, product=settings().product_name, url=url, team=team.slug
    )
    return Delivery(outcome=Outcome.SENT, message_id=mail.send(message, now=now))


def _notify_of_reset(user: User, job: PasswordWasReset, now: datetime) -> Delivery:
    """A user who did not reset the password learns that someone else can read their email."""
    _count(job, user.email, now)
    if own := hook("on_password_reset"):
        return _call(own, {"user": user_json(user)}, user, job.mail_context.request)
    template = partial(
        templates.password_was_reset,
        sessions_ended=job.sessions_ended,
        keys_deleted=job.keys_deleted,
    )
    return _send(template, user, job.mail_context.base_url, now)


def _notify_previous_address(job: EmailWasChanged, now: datetime) -> Delivery:
    """Notify the previous address. No user is looked up by it: another user may have the address by now."""
    _count(job, job.email, now)
    message = templates.email_was_changed(
        to=job.email,
        product=settings().product_name,
        url=job.mail_context.base_url,
        new_email=job.new_email,
        changed_at=from_ms(job.changed_at_ms),
        by_operator=job.by_operator,
        by_provider=job.by_provider,
    )
    message_id = mail.send(message, now=now)
    return Delivery(outcome=Outcome.SENT, user_id=job.user_id, message_id=message_id)


def _notify_of_provider(job: ProviderLinked, now: datetime) -> Delivery:
    """A thief of a session can link an account of their own. An unverified address may be another person's."""
    user = service.find_user(job.user_id)
    if user is None:
        return Delivery(outcome=Outcome.UNKNOWN_USER)
    if not user.email_verified:
        return Delivery(outcome=Outcome.UNVERIFIED_ADDRESS, user_id=user.id)
    _count(job, user.email, now)
    template = partial(templates.provider_linked, provider=job.provider)
    return _send(template, user, job.mail_context.base_url, now)


def _notify_of_key(job: KeyNeverExpires, now: datetime) -> Delivery:
    """A thief of a session can create a key that outlives it. An unverified address may be another person's."""
    user = service.find_user(job.user_id)
    if user is None:
        return Delivery(outcome=Outcome.UNKNOWN_USER)
    if not user.email_verified:
        return Delivery(outcome=Outcome.UNVERIFIED_ADDRESS, user_id=user.id)
    _count(job, user.email, now)
    template = partial(templates.key_never_expires, key_id=job.key_id, key_start=job.key_start)
    return _send(template, user, job.mail_context.base_url, now)


def _warn_of_end(job: AccessEnds, now: datetime) -> Delivery:
    """Warn a user whose access still ends soon when the job runs, and who can sign in to move the end."""
    user = service.find_user(job.user_id)
    if user is None:
        return Delivery(outcome=Outcome.UNKNOWN_USER)
    provider = service.managing_provider(user)
    if (
        provider is None
        or user.access_until is None
        or not user.has_access(now)
        or user.access_until - now > WARNED_BEFORE
    ):
        return Delivery(outcome=Outcome.ACCESS_GOES_ON, user_id=user.id)
    _count(job, user.email, now)
    template = partial(templates.access_ends, provider=provider.name, ends_at=user.access_until)
    return _send(template, user, f"{settings().base_url or provider.origin}/sign-in", now)


def _notify_of_rule(job: RulePinned, now: datetime) -> Delivery:
    """The first job of the repository has decided which ids the rule accepts, so an owner should check them."""
    template = partial(templates.rule_pinned, rule_id=job.rule_id)
    return _notify_owner(job, template, now, view="protection")


def _notify_of_protection(job: TeamProtected, now: datetime) -> Delivery:
    """An admin or the operator may have done it. From then on, the builds of others share less, or too much."""
    template = templates.team_unprotected if job.ended else templates.team_protected
    return _notify_owner(job, template, now)


def _notify_of_trust(job: TrustGiven, now: datetime) -> Delivery:
    """A thief of a session, or an admin, can name a credential that stays when they are gone."""
    maker = service.find_user(job.made_by) if job.made_by else None
    template = partial(
        templates.trust_given,
        maker="the operator" if not job.made_by else maker.email if maker else "a deleted user",
        rule_id=job.rule_id,
        key_id=job.key_id,
    )
    return _notify_owner(job, template, now, view="protection" if job.rule_id else "keys")


def _notify_of_departure(job: MakerLeft, now: datetime) -> Delivery:
    template = partial(
        templates.maker_left,
        maker=job.maker,
        rules=job.rules,
        keys=job.keys,
        known=job.known,
        ending={key_id: from_ms(end) for key_id, end in job.ending.items()},
    )
    return _notify_owner(job, template, now, view="keys" if job.known else "protection")


def _notify_owner(
    job: RulePinned | TeamProtected | TrustGiven | MakerLeft,
    template: Callable[..., Message],
    now: datetime,
    *,
    view: str | None = None,
) -> Delivery:
    """Send the owner an email that leads to a view of the team in the console, or to the service's address."""
    user, team = service.find_user(job.user_id), find_team(job.team_id)
    if user is None or team is None:
        return Delivery(outcome=Outcome.UNKNOWN_USER)
    if not user.email_verified:
        return Delivery(outcome=Outcome.UNVERIFIED_ADDRESS, user_id=user.id)
    _count(job, user.email, now)
    template = partial(template, team=team.slug)
    url = job.mail_context.base_url
    if view is not None:
        url += f"/console/t/{team.slug}/{view}"
    return _send(template, user, url, now)


def _count(job: EmailJob, recipient: str, now: datetime) -> None:
    """Count an email before it is sent, also if a proxy limits requests in place of Larder. Raises TooManyRequests.

    What strangers can have sent to any address is counted together. Other kinds are counted separately: a thief must
    not use up the emails that would warn the owner. Reset links have no limit by day, so that a stranger who asks for
    many cannot keep the owner from getting one: those of the last hour are still valid.
    """
    sort = "unrequested" if isinstance(job, _UNREQUESTED) else job.kind
    counted = f"{sort}#{hash_key(canonical(recipient))}"
    take(f"mail-by-hour#{counted}", MAIL_IN_AN_HOUR, now=now)
    if not isinstance(job, ResetPassword):
        take(f"mail-by-day#{counted}", MAIL_IN_A_DAY, now=now)


def _send(template: Callable[..., Message], user: User, url: str, now: datetime) -> Delivery:
    message = template(to=user.email, product=settings().product_name, url=url)
    message_id = mail.send(message, now=now)
    return Delivery(outcome=Outcome.SENT, user_id=user.id, message_id=message_id)


def _hand_over(
    own: Hook, user: User, url: str, token: str, request: RequestDescription
) -> Delivery:
    return _call(own, {"user": user_json(user), "url": url, "token": token}, user, request)


def _call(
    own: Hook, data: dict[str, Any], user: User | None, request: RequestDescription
) -> Delivery:
    try:
        own(data=data, request=_described(request))
    except Exception as error:  # noqa: BLE001 - any error: its message must not reach the log
        *_, last = traceback.extract_tb(error.__traceback__)
        where = f"{last.filename}:{last.lineno} in {last.name}"
        raise IntegratorFailed(f"{own.name}: {type(error).__name__} at {where}") from None
    return Delivery(outcome=Outcome.HANDED_OVER, user_id=None if user is None else user.id)


def _described(request: RequestDescription) -> dict[str, Any]:
    return {
        "method": request.method,
        "path": request.path,
        "ipAddress": request.ip_address,
        "userAgent": request.user_agent,
    }


def _callback(url: str, default: str, now: datetime) -> str:
    """The parameter of a link that names the page to redirect to.

    Anyone can have a link sent to an address, so the text of a given URL must not be readable in it.
    """
    if url:
        return f"callback={link_tokens.issue_callback_token(url, now=now)}"
    return f"callbackURL={quote(default, safe='')}"
