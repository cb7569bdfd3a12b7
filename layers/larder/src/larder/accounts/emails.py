"""Makes the links that mail carries and sends them, or has the integrator's own functions do so."""

import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Any
from urllib.parse import quote, urljoin

from larder import extensions
from larder.accounts import links, service
from larder.accounts.addresses import canonical, parse_address
from larder.accounts.email_jobs import EmailJob, EmailKind, RequestDescription
from larder.accounts.models import User
from larder.accounts.user_json import user_json
from larder.clock import from_ms
from larder.invitations import service as invitations
from larder.mail import service as mail
from larder.mail import templates
from larder.mail.models import Message
from larder.settings import settings
from larder.teams.service import find_team

_VERIFIED_PAGE = "/verified"
"""Our own page, for links that name none."""


class Outcome(StrEnum):
    SENT = "sent"
    HANDED_OVER = "handed over"
    UNKNOWN_ADDRESS = "unknown address"
    VERIFIED_ALREADY = "verified already"
    TAKEN_ADDRESS = "taken address"
    UNKNOWN_USER = "unknown user"
    OTHER_CREDENTIALS = "password or sessions ended"
    NO_INVITATION = "no such invitation any more"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """What became of a job, in ids alone. `message_id` is SES's or the outbox's."""

    outcome: Outcome
    user_id: str | None = None
    message_id: str | None = None


class IntegratorFailed(Exception):
    """The integrator's function raised an error. Its message may hold the link, so only type and place are told."""


def deliver(job: EmailJob, *, now: datetime) -> Delivery:
    """Send what the job asks for, if there is somebody to send it to.

    A job that comes twice sends two messages. Both links work: a verification can be followed again, and of several
    reset links the first one used ends the others. Raises TryAgain, MailRefused, IntegratorFailed.
    """
    if job.kind is EmailKind.CHANGE_EMAIL:
        return _send_change_link(job, now)
    if job.kind is EmailKind.TEAM_INVITATION:
        return _send_invitation(job, now)
    if job.kind is EmailKind.EMAIL_CHANGED:
        return _tell_of_new_email(job, now)
    user = service.find_user_by_email(job.email)
    if user is None:
        return Delivery(outcome=Outcome.UNKNOWN_ADDRESS)
    if job.kind is EmailKind.RESET_PASSWORD:
        return _send_reset_link(user, job, now)
    if job.kind is EmailKind.VERIFY_EMAIL:
        return _send_verification_link(user, job, now)
    if job.kind is EmailKind.PASSWORD_RESET:
        return _tell_of_reset(user, job, now)
    return _send(templates.sign_up_again, user, urljoin(job.base_url, job.callback_url), now)


def _send_verification_link(user: User, job: EmailJob, now: datetime) -> Delivery:
    if user.email_verified:
        return Delivery(outcome=Outcome.VERIFIED_ALREADY, user_id=user.id)
    token = links.issue_verification_token(user, now=now)
    return _send_token(templates.verify_email, user, token, job, now)


def _send_change_link(job: EmailJob, now: datetime) -> Delivery:
    """To the new address, which is the user's once the link is followed. Its owner alone can say that it is theirs."""
    user = service.find_user(job.user_id or "")
    if user is None:
        return Delivery(outcome=Outcome.UNKNOWN_USER)
    if job.credentials != links.credentials_of(user):
        # A job can wait for a day: what it asks for must not outlive the session that asked.
        return Delivery(outcome=Outcome.OTHER_CREDENTIALS, user_id=user.id)
    if service.find_user_by_email(job.email) is not None:
        return Delivery(outcome=Outcome.TAKEN_ADDRESS, user_id=user.id)
    new_email = parse_address(job.email)
    token = links.issue_verification_token(user, new_email=new_email, now=now)
    return _send_token(templates.change_email, replace(user, email=new_email), token, job, now)


def _send_token(
    template: Callable[..., Message], user: User, token: str, job: EmailJob, now: datetime
) -> Delivery:
    callback = _quoted(job.callback_url or _VERIFIED_PAGE)
    url = f"{job.base_url}/api/auth/verify-email?token={token}&callbackURL={callback}"
    if settings().send_verification_email:
        return _hand_over("send_verification_email", user, url, token, job.request)
    return _send(template, user, url, now)


def _send_reset_link(user: User, job: EmailJob, now: datetime) -> Delivery:
    token = links.issue_reset_token(user, now=now)
    callback = _quoted(job.callback_url)
    url = f"{job.base_url}/api/auth/reset-password/{token}?callbackURL={callback}"
    if settings().send_reset_password:
        return _hand_over("send_reset_password", user, url, token, job.request)
    return _send(templates.reset_password, user, url, now)


def _send_invitation(job: EmailJob, now: datetime) -> Delivery:
    """To an address that nobody may have yet: who it is, joining tells."""
    team_id, invitation_id = job.team_id or "", job.invitation_id or ""
    invitation = invitations.find(team_id, canonical(job.email), invitation_id, now=now)
    team = None if invitation is None else find_team(team_id)
    if invitation is None or team is None:
        return Delivery(outcome=Outcome.NO_INVITATION)
    token = invitations.issue_token(invitation)
    url = f"{job.base_url}/join?token={token}"
    if settings().send_team_invitation:
        data = {
            "email": invitation.email,
            "url": url,
            "token": token,
            "team": {"id": team.id, "slug": team.slug, "name": team.name},
            "role": invitation.role.value,
        }
        return _call("send_team_invitation", data, None, job.request)
    message = templates.team_invitation(
        to=invitation.email, product=settings().product_name, url=url, team=team.slug
    )
    return Delivery(outcome=Outcome.SENT, message_id=mail.send(message, now=now))


def _tell_of_reset(user: User, job: EmailJob, now: datetime) -> Delivery:
    """Whoever reads this and did not do it learns that somebody else has their mail."""
    if settings().on_password_reset:
        return _call("on_password_reset", {"user": user_json(user)}, user, job.request)
    template = partial(
        templates.password_was_reset,
        sessions_ended=job.sessions_ended,
        keys_deleted=job.keys_deleted,
    )
    return _send(template, user, job.base_url, now)


def _tell_of_new_email(job: EmailJob, now: datetime) -> Delivery:
    """To the address that the user has left: nobody is looked up by it, for it may be somebody else's by now."""
    changed_at = now if job.changed_at_ms is None else from_ms(job.changed_at_ms)
    message = templates.email_was_changed(
        to=job.email,
        product=settings().product_name,
        url=job.base_url,
        new_email=job.new_email or "",
        changed_at=changed_at,
        by_operator=job.by_operator,
    )
    message_id = mail.send(message, now=now)
    return Delivery(outcome=Outcome.SENT, user_id=job.user_id, message_id=message_id)


def _send(template: Callable[..., Message], user: User, url: str, now: datetime) -> Delivery:
    message = template(to=user.email, product=settings().product_name, url=url)
    message_id = mail.send(message, now=now)
    return Delivery(outcome=Outcome.SENT, user_id=user.id, message_id=message_id)


def _hand_over(
    option: str, user: User, url: str, token: str, request: RequestDescription
) -> Delivery:
    return _call(option, {"user": user_json(user), "url": url, "token": token}, user, request)


def _call(
    option: str, data: dict[str, Any], user: User | None, request: RequestDescription
) -> Delivery:
    function = extensions.load(option)
    try:
        function(data=data, request=_described(request))
    except Exception as error:  # noqa: BLE001 - whatever it is, it must not be told in its own words
        *_, last = traceback.extract_tb(error.__traceback__)
        where = f"{last.filename}:{last.lineno} in {last.name}"
        name = getattr(settings(), option)
        raise IntegratorFailed(f"{name}: {type(error).__name__} at {where}") from None
    return Delivery(outcome=Outcome.HANDED_OVER, user_id=None if user is None else user.id)


def _described(request: RequestDescription) -> dict[str, Any]:
    return {
        "method": request.method,
        "path": request.path,
        "ipAddress": request.ip_address,
        "userAgent": request.user_agent,
    }


def _quoted(url: str) -> str:
    # JSON may hold half a character, which has no bytes.
    return quote(url, safe="", errors="replace")
