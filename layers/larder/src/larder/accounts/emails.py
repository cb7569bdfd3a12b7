"""Make the links for account email, and send them or call the integrator's functions with them."""

import traceback
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
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
    KeyPaused,
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
from larder.mail.templates import masked
from larder.metrics import count
from larder.rate_limits.models import MAIL_IN_A_DAY, MAIL_IN_AN_HOUR
from larder.rate_limits.service import take
from larder.settings import settings
from larder.teams.teams import find_team

_VERIFIED_PAGE = "/verified"
"""Larder's own page, for links without a callback URL."""

_UNREQUESTED = (VerifyEmail, SignUpAgain, ChangeEmail, InviteToTeam)

TeamNotice = RulePinned | TeamProtected | TrustGiven | MakerLeft | KeyPaused
Notice = ProviderLinked | KeyNeverExpires | TeamNotice


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
        case VerifyEmail() | ResetPassword() | SignUpAgain() | PasswordWasReset():
            user = service.find_user_by_email(job.email)
            if user is None:
                return Delivery(outcome=Outcome.UNKNOWN_ADDRESS)
            return _deliver_to(user, job, now)
        case ConfirmEmailChange() | ChangeEmail():
            return _send_change_link(job, now)
        case InviteToTeam():
            return _send_invitation(job, now)
        case AccessEnds():
            return _warn_of_end(job, now)
        case EmailWasChanged():
            return _notify_previous_address(job, now)
        case _:
            return _notify(job, now)


# Links ------------------------------------------------------------------------------------------


def _deliver_to(
    user: User, job: VerifyEmail | ResetPassword | SignUpAgain | PasswordWasReset, now: datetime
) -> Delivery:
    match job:
        case VerifyEmail():
            if user.proven or (user.email_verified and not job.by_user):
                return Delivery(outcome=Outcome.VERIFIED_ALREADY, user_id=user.id)
            _count(job, user.email, now)
            token = link_tokens.issue_verification_token(user, now=now)
            return _send_token("verify_email", user, token, job, now)
        case ResetPassword():
            return _send_reset_link(user, job, now)
        case SignUpAgain():
            _count(job, user.email, now)
            return _send("sign_up_again", user, job.mail_context.base_url, now)
        case PasswordWasReset():
            return _notify_of_reset(user, job, now)


def _send_change_link(job: ChangeEmail | ConfirmEmailChange, now: datetime) -> Delivery:
    """Send a link to the new address, because only its owner can confirm it. With ConfirmEmailChange, first send one to
    the current address: a thief of a session cannot read the user's mail.
    """
    user = service.find_user(job.user_id)
    new_email = job.new_email if isinstance(job, ConfirmEmailChange) else parse_address(job.email)
    if user is None:
        return Delivery(outcome=Outcome.UNKNOWN_USER)
    if job.credentials != link_tokens.credentials_of(user):
        # A job can wait for a day, but the change must end with the sessions of the user who asked for it.
        return Delivery(outcome=Outcome.OTHER_CREDENTIALS, user_id=user.id)
    if service.find_user_by_email(new_email) is not None:
        return Delivery(outcome=Outcome.TAKEN_ADDRESS, user_id=user.id)
    if isinstance(job, ChangeEmail):
        _count(job, new_email, now)
        token = link_tokens.issue_verification_token(user, new_email=new_email, now=now)
        return _send_token("change_email", replace(user, email=new_email), token, job, now)
    if user.email != job.email:
        return Delivery(outcome=Outcome.OTHER_ADDRESS, user_id=user.id)
    _count(job, user.email, now)
    token = link_tokens.issue_confirmation_token(
        user, new_email=new_email, callback_url=job.callback_url, now=now
    )
    return _send_token("confirm_email_change", user, token, job, now, new_email=new_email)


def _send_token(
    text: str,
    user: User,
    token: str,
    job: VerifyEmail | ChangeEmail | ConfirmEmailChange,
    now: datetime,
    new_email: str = "",
) -> Delivery:
    callback = _callback(job.callback_url, _VERIFIED_PAGE, now)
    url = f"{job.mail_context.base_url}/api/auth/verify-email?token={token}&{callback}"
    if own := hook("send_verification_email"):
        changed = {"newEmail": new_email} if new_email else {}
        data = {"user": user_json(user), **changed, "url": url, "token": token}
        return _call(own, data, user, job.mail_context.request)
    return _send(text, user, url, now, new=masked(new_email))


def _send_reset_link(user: User, job: ResetPassword, now: datetime) -> Delivery:
    _count(job, user.email, now)
    if provider := service.managing_provider(user):
        # A password would not work.
        url = f"{job.mail_context.base_url}/sign-in"
        return _send("sign_in_with_provider", user, url, now, provider=provider.name)
    token = password_resets.issue_reset_token(user, now=now)
    callback = _callback(job.callback_url, "", now)
    url = f"{job.mail_context.base_url}/api/auth/reset-password/{token}?{callback}"
    if own := hook("send_reset_password"):
        data = {"user": user_json(user), "url": url, "token": token}
        return _call(own, data, user, job.mail_context.request)
    return _send("reset_password", user, url, now)


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
    return _send("team_invitation", invitation.email, url, now, team=team.slug)


# Notices ----------------------------------------------------------------------------------------


def _notify_of_reset(user: User, job: PasswordWasReset, now: datetime) -> Delivery:
    """A user who did not reset the password learns that someone else can read their email."""
    _count(job, user.email, now)
    if own := hook("on_password_reset"):
        return _call(own, {"user": user_json(user)}, user, job.mail_context.request)
    sessions = "Browsers that were signed in to the account stay signed in."
    if job.sessions_ended:
        sessions = "All browsers that were signed in to the account have been signed out."
    keys = "The API keys of the account still work. Delete any that you do not recognize."
    if job.keys_deleted:
        keys = (
            "The API keys of the account were deleted, because no one who used it had confirmed before that they "
            "receive mail at this address. Create new ones."
        )
    url = job.mail_context.base_url
    return _send("password_reset", user, url, now, sessions=sessions, keys=keys)


def _notify_previous_address(job: EmailWasChanged, now: datetime) -> Delivery:
    """Notify the previous address. No user is looked up by it: another user may have the address by now."""
    _count(job, job.email, now)
    product = settings().product_name
    how = "It was confirmed with a link that we sent to the new address."
    if_not_you = (
        "If it was not you, someone else is using your account, and you cannot recover it yourself. "
        f"Contact the operator of {product} immediately."
    )
    if job.by_provider:
        how = f"{job.by_provider}, which you sign in with, has this address for you now."
    if job.by_operator:
        how = f"The operator of {product} changed it."
        if_not_you = "If you did not expect this, contact the operator."
    sent = _send(
        "email_changed",
        job.email,
        job.mail_context.base_url,
        now,
        new=masked(job.new_email),
        when=f"{from_ms(job.changed_at_ms).astimezone(UTC):%Y-%m-%d %H:%M} UTC",
        how=how,
        if_not_you=if_not_you,
    )
    return replace(sent, user_id=job.user_id)


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
    ends_at = f"{user.access_until.astimezone(UTC):%d %B %Y at %H:%M} UTC"
    url = f"{settings().base_url or provider.origin}/sign-in"
    return _send("access_ends", user, url, now, provider=provider.name, ends_at=ends_at)


def _notify(job: Notice, now: datetime) -> Delivery:
    """Notify a user of what a thief of a session could have done, or an owner of what decides what the team restores.

    An unverified address may be another person's. Notices about a team lead to a view of it in the console.
    """
    user = service.find_user(job.user_id)
    team = find_team(job.team_id) if isinstance(job, TeamNotice) else None
    if user is None or (isinstance(job, TeamNotice) and team is None):
        return Delivery(outcome=Outcome.UNKNOWN_USER)
    if not user.email_verified:
        return Delivery(outcome=Outcome.UNVERIFIED_ADDRESS, user_id=user.id)
    _count(job, user.email, now)
    text, view, values = _notice(job)
    slug = team.slug if team else ""
    url = job.mail_context.base_url + (f"/console/t/{slug}/{view}" if view else "")
    return _send(text, user, url, now, team=slug, **values)


def _notice(job: Notice) -> tuple[str, str, dict[str, str]]:
    """The text, the view of the team, and the values of the text."""
    match job:
        case ProviderLinked():
            return job.kind, "", {"provider": job.provider}
        case KeyNeverExpires():
            start = job.key_start and f" and it begins with {job.key_start} after its prefix"
            return job.kind, "", {"which": f"{job.key_id}{start}"}
        case RulePinned():
            return job.kind, "protection", {"rule": job.rule_id}
        case TeamProtected():
            return "team_unprotected" if job.ended else job.kind, "", {}
        case TrustGiven(rule_id=rule):
            maker = service.find_user(job.made_by) if job.made_by else None
            name = "the operator" if not job.made_by else maker.email if maker else "a deleted user"
            what = "rule for CI jobs" if rule else "trusted API key"
            which = f"rule {rule} for CI jobs" if rule else f"trusted API key {job.key_id}"
            view = "protection" if rule else "keys"
            return job.kind, view, {"what": what, "which": which, "maker": name}
        case KeyPaused():
            return job.kind, "keys", {"key": job.key_id, "day": job.day}
        case MakerLeft():
            values = {"maker": job.maker, "left": " ".join(_left_behind(job))}
            view = "keys" if job.known else "protection"
            return job.kind, view, {**values, "view": "keys" if job.known else "rules"}


def _left_behind(job: MakerLeft) -> Iterator[str]:
    if job.rules:
        yield f"They added the rules {', '.join(job.rules)}, which still give tokens to CI jobs."
    if job.keys:
        yield f"Their trusted API keys no longer work: {', '.join(job.keys)}."
    if job.known:
        yield f"They know these API keys of the team: {', '.join(job.known)}. Rotate them."
    days = {key_id: f"{from_ms(end):%-d %B %Y}" for key_id, end in job.ending.items()}
    for day in sorted(set(days.values())):
        ids = ", ".join(key_id for key_id in days if days[key_id] == day)
        yield f"{ids} will end on {day} unless an owner or admin rotates it before."


# Sending ----------------------------------------------------------------------------------------


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


def _send(text: str, recipient: User | str, url: str, now: datetime, **values: str) -> Delivery:
    """Send a text of larder.mail.templates to a user, or to an address."""
    to, user_id = (
        (recipient, None) if isinstance(recipient, str) else (recipient.email, recipient.id)
    )
    message = templates.message(text, to=to, product=settings().product_name, url=url, **values)
    return Delivery(outcome=Outcome.SENT, user_id=user_id, message_id=mail.send(message, now=now))


def _call(
    own: Hook, data: dict[str, Any], user: User | None, request: RequestDescription
) -> Delivery:
    described = {
        "method": request.method,
        "path": request.path,
        "ipAddress": request.ip_address,
        "userAgent": request.user_agent,
    }
    try:
        own(data=data, request=described)
    except Exception as error:  # noqa: BLE001 - any error: its message must not reach the log
        *_, last = traceback.extract_tb(error.__traceback__)
        where = f"{last.filename}:{last.lineno} in {last.name}"
        raise IntegratorFailed(f"{own.name}: {type(error).__name__} at {where}") from None
    return Delivery(outcome=Outcome.HANDED_OVER, user_id=None if user is None else user.id)


def _callback(url: str, default: str, now: datetime) -> str:
    """The parameter of a link that names the page to redirect to.

    Anyone can have a link sent to an address, so the text of a given URL must not be readable in it.
    """
    if url:
        return f"callback={link_tokens.issue_callback_token(url, now=now)}"
    return f"callbackURL={quote(default, safe='')}"
