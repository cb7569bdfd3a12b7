"""Every error that a client can receive: its status, its code, its message. docs/errors.md lists them.

Raise one; the web package turns it into the reply. Codes are part of the contract with clients: the build client acts
on `remote_caching_*` and on nothing else by name, and it posts the stored token to another service when it reads the
code `forbidden`, which therefore does not exist here (docs/clients/turbo.md#status-codes).
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import ClassVar

MAX_TOLD = 10
"""Broken rules that one message names; of the others it has the number."""


class LarderError(Exception):
    """An answer that is no success. `headers` are sent with it."""

    status: ClassVar[int]
    code: ClassVar[str]
    message: str
    headers: Mapping[str, str] = MappingProxyType({})

    def __init__(self, message: str | None = None) -> None:
        if message is not None:
            self.message = message
        super().__init__(self.message)


class InvalidRequest(LarderError):
    """Values in the path, the query, the headers or the body break rules. The message names both; see `MAX_TOLD`."""

    status = 400
    code = "bad_request"

    def __init__(self, field: str, rule: str, *others: tuple[str, str]) -> None:
        self.field = field
        self.rule = rule
        self.others = others
        super().__init__(_told(f"{name}: {broken}" for name, broken in [(field, rule), *others]))


class InvalidBody(LarderError):
    """The same for `/api/auth`, in the words of its clients: `[body.name] the rule`.

    docs/clients/better-auth.md#order-of-checks
    """

    status = 400
    code = "validation_error"

    def __init__(self, field: str, rule: str, *others: tuple[str, str]) -> None:
        self.field = field
        told = (f"[body.{name}] {broken}" for name, broken in [(field, rule), *others])
        super().__init__(_told(told))


class InvalidQuery(LarderError):
    """The same for a parameter of the query."""

    status = 400
    code = "validation_error"

    def __init__(self, field: str, rule: str) -> None:
        self.field = field
        super().__init__(f"[query.{field}] {rule}")


class UnsupportedMediaType(LarderError):
    status = 415
    code = "unsupported_media_type"
    message = "The body must be sent as application/json."


class Unauthenticated(LarderError):
    """There is no credential, or it is malformed, unknown, disabled, expired or revoked. Which one is not told."""

    status = 401
    code = "unauthorized"
    message = "A valid bearer token is required: it is missing, unknown, expired or revoked."
    headers = MappingProxyType({"WWW-Authenticate": "Bearer"})


class NotSignedIn(LarderError):
    """Nobody is signed in: there is no session, or it is unknown, expired or ended. The reply does not say which."""

    status = 401
    code = "unauthorized"
    message = "You need to be signed in."


class UnauthorizedSession(NotSignedIn):
    """The same where a key is made or changed: Better Auth has a code of its own there."""

    code = "unauthorized_session"


class KeyForAnother(UnauthorizedSession):
    """Somebody who is no operator names another as the owner of a key. Taking it was CVE-2025-61928."""

    message = (
        "userId: you can make and change keys for yourself only. Operators alone do so for others."
    )


class SessionNotFresh(LarderError):
    status = 403
    code = "session_not_fresh"
    message = "You signed in too long ago for this. Sign in again."


class OperatorOnly(LarderError):
    status = 403
    code = "operator_only"
    message = "Only an operator of this deployment may do this."


class InvalidEmail(LarderError):
    status = 400
    code = "invalid_email"

    def __init__(self, field: str = "email") -> None:
        super().__init__(f"{field}: must be an e-mail address")


class PasswordTooShort(LarderError):
    status = 400
    code = "password_too_short"

    def __init__(self, field: str, least: int, most: int) -> None:
        super().__init__(f"{field}: must have {least} to {most} characters, not fewer")


class PasswordTooLong(LarderError):
    status = 400
    code = "password_too_long"

    def __init__(self, field: str, least: int, most: int) -> None:
        super().__init__(f"{field}: must have {least} to {most} characters, not more")


class InvalidPassword(LarderError):
    """Somebody who is signed in gave a wrong password."""

    status = 400
    code = "invalid_password"
    message = "The password is wrong."


class InvalidEmailOrPassword(LarderError):
    """Also the answer for an address that nobody has: what is wrong is not told."""

    status = 401
    code = "invalid_email_or_password"
    message = "The e-mail address or the password is wrong."


class EmailNotVerified(LarderError):
    """Only told to somebody who knows the password."""

    status = 403
    code = "email_not_verified"
    message = "The e-mail address is not verified yet. A new link is on its way to it."


class EmailPasswordDisabled(LarderError):
    status = 400
    code = "email_password_disabled"
    message = "Signing in with e-mail and password is switched off here."


class SignUpDisabled(LarderError):
    status = 400
    code = "email_password_sign_up_disabled"
    message = "Signing up is switched off here. The operator can add you."


class EmailDomainNotAllowed(SignUpDisabled):
    """Which domains are allowed is not told: it would tell strangers whose addresses to try."""

    message = "Addresses of this domain cannot sign up here. The operator can add you."


class UserAlreadyExists(LarderError):
    status = 422
    code = "user_already_exists_use_another_email"
    message = "There is a user with this e-mail address. Use another one, or sign in."


class EmailCannotBeUpdated(LarderError):
    status = 400
    code = "email_can_not_be_updated"
    message = "The e-mail address has an endpoint of its own: /change-email."


class NoFieldsToUpdate(LarderError):
    status = 400
    code = "no_fields_to_update"
    message = "No fields to update"


class InvalidVerificationToken(LarderError):
    """A verification link was not made here, or leads to what has been overtaken."""

    status = 401
    code = "invalid_token"
    message = "The link is not valid. Ask for a new one."


class VerificationTokenExpired(InvalidVerificationToken):
    code = "token_expired"
    message = "The link is too old. Ask for a new one."


class VerifiedUserNotFound(InvalidVerificationToken):
    code = "user_not_found"
    message = "The link is genuine, but its user is gone or has another address by now."


class EmailMismatch(LarderError):
    status = 400
    code = "email_mismatch"
    message = "This is not the e-mail address of who is signed in."


class EmailAlreadyVerified(LarderError):
    status = 400
    code = "email_already_verified"
    message = "The e-mail address is verified already."


class EmailUnchanged(LarderError):
    status = 400
    code = "email_is_the_same"
    message = "newEmail is the address that the user has."


class ChangeEmailDisabled(LarderError):
    status = 400
    code = "change_email_disabled"
    message = "Changing the e-mail address is switched off here."


class ResetPasswordDisabled(LarderError):
    status = 400
    code = "reset_password_disabled"
    message = "Signing in with e-mail and password is switched off here, and so is resetting one."


class SessionExpired(LarderError):
    """Deleting a user asks for their password, or for a session that began lately."""

    status = 400
    code = "session_expired"
    message = "You signed in too long ago for this. Sign in again, or send your password along."


class SoleTeamOwner(LarderError):
    status = 400
    code = "sole_team_owner"

    def __init__(self, slugs: list[str]) -> None:
        self.slugs = slugs
        teams = ", ".join(slugs)
        super().__init__(
            f"You are the only owner of {teams}. Make somebody else an owner, or delete the team, first."
        )


class LastOwner(LarderError):
    """The only owner of a team would leave it, or be one no more."""

    status = 409
    code = "last_owner"
    message = "This is the team's only owner. Make somebody else an owner first."


class SlugTaken(LarderError):
    """Another team has the slug, or had it and is still reached by it."""

    status = 409
    code = "slug_taken"

    def __init__(self, slug: str) -> None:
        self.slug = slug
        super().__init__(f"Another team has the slug {slug}. Choose another one.")


class TeamLimitReached(LarderError):
    status = 409
    code = "team_limit_reached"
    message = "You have made as many teams as one person may. Delete one, or ask the operator for another."


class InvitationLimitReached(LarderError):
    status = 409
    code = "invitation_limit_reached"
    message = "The team has as many open invitations as it may. Withdraw one, or wait until one is used or over."


class PathNotFound(LarderError):
    status = 404
    code = "not_found"
    message = "There is no such path. GET /openapi.json lists those that exist."


class MethodNotAllowed(LarderError):
    """The path takes other methods, which `Allow` lists."""

    status = 405
    code = "method_not_allowed"

    def __init__(self, methods: Iterable[str]) -> None:
        allowed = ", ".join(methods)
        self.headers = {"Allow": allowed}
        super().__init__(f"This path does not take the method of the request. It takes {allowed}.")


class DeleteUserDisabled(LarderError):
    """Told like a path that does not exist."""

    status = 404
    code = "not_found"
    message = "Deleting users is switched off here."


class InvalidLinkToken(LarderError):
    """The token of a link is unknown, used, or past its time."""

    status = 400
    code = "invalid_token"
    message = "The link is not valid, or not any more. Ask for a new one."


class NotLoopback(LarderError):
    """A build client is told its token at an address of the computer that its user sits at, and nowhere else."""

    status = 400
    code = "redirect_is_not_loopback"
    message = (
        "The address to send the token to must be http://127.0.0.1:<port>, http://localhost:<port> or "
        "http://[::1]:<port>, with nothing after it."
    )


class InvalidLoginCode(LarderError):
    """A code of `turbo login --sso-team` is unknown, used, or past its time. Which of them is not told."""

    status = 401
    code = "invalid_login_code"
    message = "The login is not valid, or not any more. Run turbo login again."


class NameRequired(InvalidRequest):
    """The first of the codes that clients of API keys know (docs/clients/better-auth.md#error-codes)."""

    code = "name_required"


class InvalidNameLength(InvalidRequest):
    code = "invalid_name_length"


class InvalidPrefixLength(InvalidRequest):
    code = "invalid_prefix_length"


class ExpiresInTooSmall(InvalidRequest):
    code = "expires_in_is_too_small"


class ExpiresInTooLarge(InvalidRequest):
    code = "expires_in_is_too_large"


class KeyExpirationDisabled(InvalidRequest):
    code = "key_disabled_expiration"


class MetadataDisabled(InvalidRequest):
    code = "metadata_disabled"


class InvalidMetadata(InvalidRequest):
    """Metadata that cannot be kept: too long, too deep, or with names that harm who reads them."""

    code = "invalid_metadata_type"


class NoValuesToUpdate(LarderError):
    status = 400
    code = "no_values_to_update"
    message = "The body names no property that is to change."


class ServerOnlyProperty(LarderError):
    """A property of a key that only an operator may set."""

    status = 400
    code = "server_only_property"

    def __init__(self, field: str) -> None:
        super().__init__(f"{field} can only be set by an operator of this deployment.")


class InvalidApiKey(LarderError):
    """What was sent as a key is too short to be one."""

    status = 403
    code = "invalid_api_key"
    message = "Invalid API key."


class PermissionNotHeld(LarderError):
    """Nobody gives a key more than they hold themselves. The message tells what is too much."""

    status = 403
    code = "permission_not_held"


class KeyNotFound(LarderError):
    """Also the answer for somebody else's key, so that nobody learns which ids there are."""

    status = 404
    code = "key_not_found"
    message = "There is no such API key."


class UsageExceeded(LarderError):
    """The key that was presented has no uses left until its next refill."""

    status = 429
    code = "usage_exceeded"
    message = "This API key has no uses left until its next refill."


class SoftBlocked(LarderError):
    """The operator's reason, where they gave one, is for whoever is blocked to read."""

    status = 402
    code = "account_soft_blocked"
    message = "This account is blocked. The operator of this cache can tell why and lift the block."

    def __init__(self, reason: str | None = None) -> None:
        super().__init__(None if reason is None else f"This account is blocked: {reason}")


class PaymentMissing(LarderError):
    status = 402
    code = "payment_missing"
    message = "A payment for this account is missing. Update the payment method with the operator of this cache."

    def __init__(self, reason: str | None = None) -> None:
        super().__init__(
            None if reason is None else f"A payment for this account is missing: {reason}"
        )


class NotATeamMember(LarderError):
    """Also the answer for a team that does not exist, so that nobody learns which teams do."""

    status = 403
    code = "not_a_team_member"
    message = (
        "The token's owner is not a member of this team, or the token is bound to another team."
    )


class ReadOnly(LarderError):
    status = 403
    code = "read_only"
    message = "This token may read artifacts but not write them."


class MissingPermission(LarderError):
    status = 403
    code = "missing_permission"
    message = "This token does not hold the permission that the request needs."


class MissingRole(LarderError):
    """The caller is a member of the team, but not of a role that may do this."""

    status = 403
    code = "missing_role"
    message = "Your role in this team does not allow this."


class SessionRequired(LarderError):
    """An API key was presented where a person has to act."""

    status = 403
    code = "session_required"
    message = "This takes the token of somebody who is signed in; an API key does not do."


class TeamCreationDisabled(LarderError):
    status = 403
    code = "team_creation_disabled"
    message = "Only operators make teams here."


class InvitationForAnother(LarderError):
    """The invitation is good, but the address that it was sent to is not that of who presents it."""

    status = 403
    code = "invitation_for_another_address"
    message = (
        "This invitation was sent to another e-mail address than yours. Sign in with that one."
    )


class CachingDisabled(LarderError):
    status = 403
    code = "remote_caching_disabled"
    message = "Remote caching is switched off for this account."


class CachingPaused(LarderError):
    status = 403
    code = "remote_caching_paused"
    message = "Remote caching is paused for this account."


class CachingOverLimit(LarderError):
    status = 403
    code = "remote_caching_over_limit"
    message = "The storage quota of this account is used up. Stored artifacts can still be read."


class LargerThanQuota(LarderError):
    """No eviction makes room for it. Not the code that ends a client's uploads: smaller artifacts are welcome."""

    status = 413
    code = "larger_than_quota"
    message = "This artifact alone is larger than the storage quota of this account."


class TeamNotFound(LarderError):
    """Also the answer for a team that the caller does not belong to, so that nobody learns which teams there are."""

    status = 404
    code = "team_not_found"
    message = "There is no such team, or you are not a member of it."


class MemberNotFound(LarderError):
    status = 404
    code = "member_not_found"
    message = "The team has no such member, and no such open invitation."


class InvitationNotFound(LarderError):
    """The token of an invitation is unknown, used, withdrawn, or past its time; or who invited may no longer do so."""

    status = 404
    code = "invitation_not_found"
    message = "The invitation is not valid, or not any more. Ask for a new one."


class ArtifactNotFound(LarderError):
    status = 404
    code = "artifact_not_found"
    message = "There is no artifact with this hash."


class RateLimited(LarderError):
    """The key's own rate limit. `Retry-After` tells, in whole seconds, when its window is over."""

    status = 429
    code = "rate_limited"
    message = "This token has been used as often as its rate limit allows. Try again later."

    def __init__(self, try_again_in_ms: int) -> None:
        super().__init__()
        self.headers = {"Retry-After": str(-(-try_again_in_ms // 1000))}


class MissingOrNullOrigin(LarderError):
    status = 403
    code = "missing_or_null_origin"
    message = "The request must tell the origin of the page that sends it."


class InvalidOrigin(LarderError):
    status = 403
    code = "invalid_origin"
    message = "The page that sends the request is of no trusted origin."


class CrossSiteNavigation(LarderError):
    """A page of another site posts a sign-in or a sign-out as if its visitor had."""

    status = 403
    code = "cross_site_navigation_login_blocked"
    message = "A page of another site may not sign its visitors in or out."


class InvalidCallbackUrl(LarderError):
    """A URL to return to that would lead to an origin that is not trusted."""

    status = 403
    code = "invalid_callback_url"
    message = "callbackURL leads to no trusted origin."


class InvalidRedirectUrl(InvalidCallbackUrl):
    code = "invalid_redirect_url"
    message = "redirectTo leads to no trusted origin."


class InvalidErrorCallbackUrl(InvalidCallbackUrl):
    code = "invalid_error_callback_url"
    message = "errorCallbackURL leads to no trusted origin."


class InvalidNewUserCallbackUrl(InvalidCallbackUrl):
    code = "invalid_new_user_callback_url"
    message = "newUserCallbackURL leads to no trusted origin."


class TooManyRequests(LarderError):
    """The limit by client address and path. Its reply has no code, which is how the client knows it."""

    status = 429
    code = "too_many_requests"
    message = "Too many requests. Please try again later."

    def __init__(self, retry_after_s: int) -> None:
        super().__init__()
        self.headers = {"X-Retry-After": str(retry_after_s), "Retry-After": str(retry_after_s)}


class TryAgain(LarderError):
    """A store that the answer depends on did not answer in time.

    What was asked for is not done, or its confirmation got lost: the same request may be sent again (docs/faults.md).
    """

    status = 503
    code = "try_again"
    message = "A part of the service did not answer in time. Try again in a moment."
    headers = MappingProxyType({"Retry-After": "2"})


class MakingRoom(TryAgain):
    """The quota is full, and what was used longest ago goes to make room, but not as fast as uploads come."""

    status = 429
    code = "making_room"
    message = "The storage quota is full, and room is being made for new artifacts. Try again in a moment."


class Throttled(TryAgain):
    """The same for the client; inside, a store that is too busy can be asked in another way."""


class InternalError(LarderError):
    """What the client sees of an error that nobody foresaw; the log has the rest under the request id."""

    status = 500
    code = "internal_error"
    message = "Something went wrong on our side. The request id finds it in the log."


def _told(broken: Iterable[str]) -> str:
    told = list(broken)
    more = len(told) - MAX_TOLD
    return "; ".join([*told[:MAX_TOLD], *([f"and {more} more"] if more > 0 else [])])
