"""Mail that a request asks for, as a job for the function SendAccountEmail.

No request looks an address up: it hands over the same job for every one, and the answer, and the time that it takes,
tell nothing. What is known of the address, and whether there is anything to send, is found out afterwards.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from larder import aws
from larder.clock import to_ms
from larder.errors import InvalidRequest
from larder.settings import settings

_MOST_BYTES = 16_384
"""Lambda would take more; the outbox has to hold the links that come of it several times over."""
_MOST_USER_AGENT_CHARACTERS = 500


class EmailKind(StrEnum):
    VERIFY_EMAIL = "verify_email"
    RESET_PASSWORD = "reset_password"  # noqa: S105 - no password
    SIGN_UP_AGAIN = "sign_up_again"
    CHANGE_EMAIL = "change_email"
    PASSWORD_RESET = "password_reset"  # noqa: S105 - no password
    EMAIL_CHANGED = "email_changed"
    TEAM_INVITATION = "team_invitation"


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestDescription:
    """The request that asked for mail, as the integrator's functions are told of it."""

    method: str
    path: str
    ip_address: str | None
    user_agent: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MailContext:
    """The request by which somebody comes: where from, and the origin that links in their mail begin with."""

    base_url: str
    request: RequestDescription


@dataclass(frozen=True, slots=True, kw_only=True)
class EmailJob:
    """`email` as the client gave it. `callback_url` is where the link leads in the end; empty for none.

    `base_url` is the origin of this service without a slash at its end: `https://cache.example.com`. `user_id` is who
    wants the address as their new one, and `credentials` what they had to ask for it with; None where it is the address
    that tells whom the job is about. `team_id` and `invitation_id` name the invitation that goes to the address, if one
    does. Where the address is one that the user has left, `new_email` is what they have taken on, at `changed_at_ms`:
    by a link that went there or, `by_operator`, without one. `sessions_ended` and `keys_deleted` say what ended with a
    password that was reset.
    """

    kind: EmailKind
    email: str
    callback_url: str
    base_url: str
    request: RequestDescription
    user_id: str | None = None
    credentials: str | None = None
    team_id: str | None = None
    invitation_id: str | None = None
    new_email: str | None = None
    changed_at_ms: int | None = None
    by_operator: bool = False
    sessions_ended: bool = True
    keys_deleted: bool = False


def send_later(
    kind: EmailKind,
    email: str,
    callback_url: str,
    mail_context: MailContext,
    *,
    user_id: str | None = None,
    credentials: str | None = None,
    team_id: str | None = None,
    invitation_id: str | None = None,
    new_email: str | None = None,
    changed_at: datetime | None = None,
    by_operator: bool = False,
    sessions_ended: bool = True,
    keys_deleted: bool = False,
) -> None:
    """Have mail of this kind sent, if there is somebody to send it to. Raises TryAgain, InvalidRequest."""
    enqueue(
        EmailJob(
            kind=kind,
            email=email,
            callback_url=callback_url,
            base_url=mail_context.base_url,
            request=mail_context.request,
            user_id=user_id,
            credentials=credentials,
            team_id=team_id,
            invitation_id=invitation_id,
            new_email=new_email,
            changed_at_ms=None if changed_at is None else to_ms(changed_at),
            by_operator=by_operator,
            sessions_ended=sessions_ended,
            keys_deleted=keys_deleted,
        )
    )


def enqueue(job: EmailJob) -> None:
    """Hand the job over: one asynchronous invocation, whatever the address. Raises TryAgain, InvalidRequest."""
    record = asdict(job)
    agent = record["request"]["user_agent"]
    record["request"]["user_agent"] = agent and agent[:_MOST_USER_AGENT_CHARACTERS]
    payload = json.dumps(record).encode()
    if len(payload) > _MOST_BYTES:
        raise InvalidRequest("body", "holds an address that is too long")
    aws.lambda_().invoke(
        FunctionName=settings().email_function, InvocationType="Event", Payload=payload
    )


def parse_job(record: Mapping[str, Any]) -> EmailJob:
    """The job that `enqueue` handed over. Raises KeyError, TypeError, ValueError for anything else."""
    return EmailJob(
        kind=EmailKind(record["kind"]),
        email=record["email"],
        callback_url=record["callback_url"],
        base_url=record["base_url"],
        request=RequestDescription(**record["request"]),
        user_id=record.get("user_id"),
        credentials=record.get("credentials"),
        team_id=record.get("team_id"),
        invitation_id=record.get("invitation_id"),
        new_email=record.get("new_email"),
        changed_at_ms=record.get("changed_at_ms"),
        by_operator=record.get("by_operator", False),
        sessions_ended=record.get("sessions_ended", True),
        keys_deleted=record.get("keys_deleted", False),
    )
