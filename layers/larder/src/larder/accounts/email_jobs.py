"""Email that a request asks for, as a job for the function SendAccountEmail.

A request does not look up the address. It hands over the same job for every address, so that neither the reply nor its
time shows whether the address has an account. The function looks up the address later, and may have nothing to send.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar, get_args

from larder import aws
from larder.errors import AddressTooLong
from larder.settings import settings

_MOST_BYTES = 16_384
"""Lambda takes more, but the outbox has to hold the link, which repeats the addresses of the job."""
_MOST_USER_AGENT_CHARACTERS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestDescription:
    """The request that asked for the email, as the integrator's functions get it."""

    method: str
    path: str
    ip_address: str | None
    user_agent: str | None


OF_SCHEDULE = RequestDescription(method="", path="", ip_address=None, user_agent=None)
"""In place of a request, for the emails that a scheduled function asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MailContext:
    """The request, and the origin of the links in its email.

    `base_url` is the origin of this service without a slash at its end: `https://cache.example.com`.
    """

    base_url: str
    request: RequestDescription


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """The fields of every job. `email` is the address to send to, as the client spelled it."""

    kind: ClassVar[str]
    email: str
    mail_context: MailContext


@dataclass(frozen=True, slots=True, kw_only=True)
class _Notice(_Job):
    """A job whose recipient is found by id."""

    email: str = ""
    user_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _TeamNotice(_Notice):
    """A notice to an owner of a team."""

    team_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyEmail(_Job):
    """Send a link that verifies the address. It redirects to `callback_url`; empty for Larder's own page.

    `by_user` says that the user asked for it while signed in. Then it is sent also to a verified address, which it can
    prove.
    """

    kind = "verify_email"
    callback_url: str
    by_user: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetPassword(_Job):
    """Send a link that redirects to `callback_url`, a page where the user sets another password."""

    kind = "reset_password"
    callback_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SignUpAgain(_Job):
    """Notify the user that the address, with which another sign-up came, already has an account."""

    kind = "sign_up_again"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmEmailChange(_Job):
    """Send a link to the user's address that confirms the change to `new_email`.

    Following it sends the link to the new address. `credentials` are those of the user at the request.
    """

    kind = "confirm_email_change"
    callback_url: str
    user_id: str
    new_email: str
    credentials: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeEmail(_Job):
    """Send a link to the new address, which becomes the user's address when the link is followed.

    `credentials` are those of the user at the request. None in jobs from version 0.1.0, which are not sent.
    """

    kind = "change_email"
    callback_url: str
    user_id: str
    credentials: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordWasReset(_Job):
    """Notify the user of a password reset, and of what it ended.

    The defaults are for jobs from version 0.1.0, which do not have these fields.
    """

    kind = "password_reset"
    sessions_ended: bool = True
    keys_deleted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EmailWasChanged(_Job):
    """Notify the previous address of the user that `new_email` replaces it, by a link or `by_operator`.

    `by_provider` is the name of the identity provider that has another address for the user.
    """

    kind = "email_changed"
    user_id: str
    new_email: str
    changed_at_ms: int
    by_operator: bool = False
    by_provider: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderLinked(_Notice):
    """Notify the user that an account at the identity provider `provider` can now sign in."""

    kind = "provider_linked"
    provider: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyNeverExpires(_Notice):
    """Notify the user of a key that was created or changed so that it never expires.

    `key_start` are its first characters after the prefix, empty if they are not stored.
    """

    kind = "key_never_expires"
    key_id: str
    key_start: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessEnds(_Notice):
    """Warn a managed user that sessions and keys end soon. The next sign-in moves the end."""

    kind = "access_ends"


@dataclass(frozen=True, slots=True, kw_only=True)
class RulePinned(_TeamNotice):
    """Notify an owner that a rule got the ids of its repository from the first token."""

    kind = "rule_pinned"
    rule_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamProtected(_TeamNotice):
    """Notify an owner that the team is protected, or with `ended` that it no longer is.

    The first key or rule that the team trusts protects it, or the operator, who can also end it.
    """

    kind = "team_protected"
    ended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustGiven(_TeamNotice):
    """Notify an owner of a new rule or of a new trusted key of the team: the other id is empty.

    `made_by` is the id of the user who made it, empty for the operator.
    """

    kind = "trust_given"
    rule_id: str = ""
    key_id: str = ""
    made_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MakerLeft(_TeamNotice):
    """Notify an owner of the rules and trusted keys of someone who can no longer make them.

    `maker` is their address. They have left the team, are no longer an owner or admin, or have lost all access. `known`
    are the team's keys whose secret they know, and `ending` says when some of these end, in milliseconds.
    """

    kind = "maker_left"
    maker: str
    rules: list[str]
    keys: list[str]
    known: list[str] = field(default_factory=list)
    ending: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPaused(_TeamNotice):
    """Notify an owner that a public read key has given all that it may on `day`, such as `2026-12-31`."""

    kind = "key_paused"
    key_id: str
    day: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InviteToTeam(_Job):
    """Send the link of an invitation."""

    kind = "team_invitation"
    team_id: str
    invitation_id: str


EmailJob = (
    VerifyEmail
    | ResetPassword
    | SignUpAgain
    | ConfirmEmailChange
    | ChangeEmail
    | PasswordWasReset
    | EmailWasChanged
    | ProviderLinked
    | KeyNeverExpires
    | AccessEnds
    | RulePinned
    | TeamProtected
    | TrustGiven
    | MakerLeft
    | KeyPaused
    | InviteToTeam
)

_JOBS: dict[str, type[EmailJob]] = {job.kind: job for job in get_args(EmailJob)}


def send_later(job: EmailJob) -> None:
    """Hand the job over: one asynchronous invocation for every address. Raises AddressTooLong, TryAgain."""
    payload = json.dumps(job_record(job)).encode()
    if len(payload) > _MOST_BYTES:
        raise AddressTooLong
    aws.lambda_().invoke(
        FunctionName=settings().email_function, InvocationType="Event", Payload=payload
    )


def job_record(job: EmailJob) -> dict[str, Any]:
    """The job as JSON. `parse_job` reads it, also that of version 0.1.0, which may run during an upgrade."""
    own = asdict(job)
    mail_context = own.pop("mail_context")
    agent = mail_context["request"]["user_agent"]
    mail_context["request"]["user_agent"] = agent and agent[:_MOST_USER_AGENT_CHARACTERS]
    # Version 0.1.0 requires a callback_url of every kind.
    return {"kind": job.kind, "callback_url": "", **own, **mail_context}


def parse_job(record: Mapping[str, Any]) -> EmailJob:
    """Parse a job, also one from version 0.1.0, which holds the fields of every kind. Raises KeyError, TypeError."""
    job = _JOBS[record["kind"]]
    mail_context = MailContext(
        base_url=record["base_url"], request=RequestDescription(**record["request"])
    )
    own = {field.name: record[field.name] for field in fields(job) if field.name in record}
    return job(**own, mail_context=mail_context)
