"""Every error that a client can receive, with its status, code and message. docs/errors.md lists them.

Raise one, and the web package turns it into the reply. Codes are part of the contract with clients. turbo acts on
`remote_caching_*` only. It posts the stored token to another service when it reads the code `forbidden`, so no error
here has that code (docs/clients/turbo.md#status-codes).
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import ClassVar

MAX_NAMED = 10
"""How many broken rules one message names. It counts the others."""


class LarderError(Exception):
    """The base class of all errors. The reply carries `headers`."""

    status: ClassVar[int]
    code: ClassVar[str]
    when: ClassVar[str]
    """When clients get this error, for docs/errors.md."""
    advice: ClassVar[str]
    """What the client can do, for docs/errors.md."""
    message: str
    headers: Mapping[str, str] = MappingProxyType({})

    def __init__(self, message: str | None = None) -> None:
        if message is not None:
            self.message = message
        super().__init__(self.message)


class InvalidRequest(LarderError):
    """Values in the path, query, headers or body break rules. The message names each value and its rule."""

    status = 400
    code = "bad_request"
    when = "A value in the path, the query, the headers or the body breaks a rule."
    advice = "Read the message. It names the value."

    def __init__(self, field: str, rule: str, *others: tuple[str, str]) -> None:
        self.field = field
        self.rule = rule
        self.others = others
        super().__init__(_joined(f"{name}: {broken}" for name, broken in [(field, rule), *others]))


class InvalidBody(LarderError):
    """The same for `/api/auth`, in the format that its clients expect: `[body.name] the rule`.

    docs/clients/better-auth.md#order-of-checks
    """

    status = 400
    code = "validation_error"
    when = "A field of a body sent to `/api/auth` breaks a rule."
    advice = "Read the message. It names every such field."

    def __init__(self, field: str, rule: str, *others: tuple[str, str]) -> None:
        self.field = field
        problems = (f"[body.{name}] {broken}" for name, broken in [(field, rule), *others])
        super().__init__(_joined(problems))


class InvalidQuery(LarderError):
    """The same for a query parameter of `/api/auth`."""

    status = 400
    code = "validation_error"
    when = "A parameter of a query sent to `/api/auth` breaks a rule."
    advice = "Read the message. It names the parameter."

    def __init__(self, field: str, rule: str) -> None:
        self.field = field
        super().__init__(f"[query.{field}] {rule}")


class UnsupportedMediaType(LarderError):
    status = 415
    code = "unsupported_media_type"
    when = "A body sent to `/api/auth` is not declared as JSON."
    advice = "Send `Content-Type: application/json`."
    message = "The body must be sent as application/json."


class Unauthenticated(LarderError):
    """The credential is missing or not valid. The reply does not reveal which, or why."""

    status = 401
    code = "unauthorized"
    when = "The token is missing, malformed, unknown, disabled, expired, revoked or used up."
    advice = "Sign in, or ask the operator for a new key."
    message = "A valid bearer token is required: it is missing, unknown, expired or revoked."
    headers = MappingProxyType({"WWW-Authenticate": "Bearer"})


class NotSignedIn(LarderError):
    """There is no session, or it is unknown, expired or ended. The reply does not reveal which."""

    status = 401
    code = "unauthorized"
    when = (
        "Under `/api/auth`, the session is missing, unknown, expired or ended. Or the API key used in place of a "
        "session is not valid, or may not do this."
    )
    advice = "Sign in."
    message = "You need to be signed in."


class UnauthorizedSession(NotSignedIn):
    """The same for creating or changing a key, where Better Auth uses another code."""

    code = "unauthorized_session"
    when = "A key is created or changed without a session, or the session is unknown, expired or ended."
    advice = "Sign in."


class KeyForAnother(UnauthorizedSession):
    """A caller who is not an operator names another user as the owner of a key.

    Better Auth once accepted this: CVE-2025-61928.
    """

    when = "A caller who is not an operator names another user as the owner of a key."
    advice = "Leave out `userId`."
    message = (
        "userId: only an operator can create or change keys for another user. Leave out userId."
    )


class SessionNotFresh(LarderError):
    status = 403
    code = "session_not_fresh"
    when = "The session is too old for this request, by default older than a day."
    advice = "Sign in again."
    message = "Your sign-in is too old for this request. Sign in again."


class OperatorOnly(LarderError):
    status = 403
    code = "operator_only"
    when = "Only an operator may do this: a user with a verified address from `OperatorEmails`."
    advice = "Use the operator's command."
    message = "Only an operator of this deployment may do this."


class InvalidEmail(LarderError):
    status = 400
    code = "invalid_email"
    when = "The email address is invalid. The message names the field, `email` or `newEmail`."
    advice = "Correct the address."

    def __init__(self, field: str = "email") -> None:
        super().__init__(f"{field}: must be an email address")


class PasswordTooShort(LarderError):
    status = 400
    code = "password_too_short"
    when = (
        "The password has too few characters, by default fewer than 8. The message names the field and the "
        "bounds."
    )
    advice = "Choose a longer password."

    def __init__(self, field: str, least: int, most: int) -> None:
        super().__init__(f"{field}: must have {least} to {most} characters, not fewer")


class PasswordTooLong(LarderError):
    status = 400
    code = "password_too_long"
    when = (
        "The password has too many characters, by default more than 128. The message names the field and the "
        "bounds."
    )
    advice = "Choose a shorter password."

    def __init__(self, field: str, least: int, most: int) -> None:
        super().__init__(f"{field}: must have {least} to {most} characters, not more")


class InvalidPassword(LarderError):
    """A signed-in user sent a wrong current password."""

    status = 400
    code = "invalid_password"
    when = "A signed-in user sent a wrong current password."
    advice = "Try again, or reset the password."
    message = "The password is wrong."


class InvalidEmailOrPassword(LarderError):
    """The reply does not reveal which of the two is wrong, so that nobody learns who has an account."""

    status = 401
    code = "invalid_email_or_password"
    when = "The address is unknown or the password is wrong. The reply does not say which."
    advice = "Try again, or reset the password."
    message = "The email address or the password is wrong."


class EmailNotVerified(LarderError):
    """Sent only if the password is correct, so that nobody else learns that the account exists."""

    status = 403
    code = "email_not_verified"
    when = "The password is correct, but the address must be verified first. A new link was sent."
    advice = "Open the link in the email."
    message = "The email address is not verified yet. We have sent a new link to it."


class EmailPasswordDisabled(LarderError):
    status = 400
    code = "email_password_disabled"
    when = "Email and password are turned off in this deployment."
    advice = "Ask the operator."
    message = "Signing in with email and password is turned off in this deployment."


class SignUpDisabled(LarderError):
    status = 400
    code = "email_password_sign_up_disabled"
    when = "Sign-up is turned off in this deployment."
    advice = "Ask the operator to add you."
    message = "Sign-up is turned off in this deployment. Ask the operator to add you."


class EmailDomainNotAllowed(SignUpDisabled):
    """The message does not list the allowed domains: strangers could use them to guess addresses."""

    when = "Addresses of this domain may not sign up."
    advice = "Ask the operator to add you."
    message = "Addresses of this domain cannot sign up. Ask the operator to add you."


class UserAlreadyExists(LarderError):
    status = 422
    code = "user_already_exists_use_another_email"
    when = "The address already belongs to a user."
    advice = "Sign in, or use another address."
    message = "This email address already belongs to a user. Sign in, or use another address."


class EmailCannotBeUpdated(LarderError):
    status = 400
    code = "email_can_not_be_updated"
    when = "The body of `/update-user` has an email address."
    advice = "Use `/change-email`."
    message = "email cannot be changed here. Use /change-email."


class NoFieldsToUpdate(LarderError):
    status = 400
    code = "no_fields_to_update"
    when = "The body of `/update-user` has neither a name nor a picture."
    advice = "Send `name` or `image`."
    message = "No fields to update"


class InvalidVerificationToken(LarderError):
    """A verification link is forged, or a later change made it invalid."""

    status = 401
    code = "invalid_token"
    when = (
        "A verification link is not from this deployment. Or it confirms a new address, and the password was changed "
        "or the sessions were revoked after it was sent."
    )
    advice = "Ask for a new link."
    message = "The link is not valid. Ask for a new one."


class VerificationTokenExpired(InvalidVerificationToken):
    code = "token_expired"
    when = "A verification link has expired."
    advice = "Ask for a new link."
    message = "The link has expired. Ask for a new one."


class VerifiedUserNotFound(InvalidVerificationToken):
    code = "user_not_found"
    when = "A verification link is genuine, but its user is deleted or has another address."
    advice = "Sign up, or ask for a new link."
    message = "The link is genuine, but its user was deleted or now has another address."


class EmailMismatch(LarderError):
    status = 400
    code = "email_mismatch"
    when = "A signed-in user asked to verify another address."
    advice = "Sign out first."
    message = "This is not the signed-in user's email address."


class EmailAlreadyVerified(LarderError):
    status = 400
    code = "email_already_verified"
    when = "The signed-in user's address is already verified."
    advice = "Nothing."
    message = "The email address is already verified."


class EmailUnchanged(LarderError):
    status = 400
    code = "email_is_the_same"
    when = "The new address is the current address."
    advice = "Nothing."
    message = "newEmail is the user's current address."


class ChangeEmailDisabled(LarderError):
    status = 400
    code = "change_email_disabled"
    when = "Users of this deployment cannot change their address."
    advice = "Ask the operator."
    message = "Changing the email address is turned off in this deployment."


class ResetPasswordDisabled(LarderError):
    status = 400
    code = "reset_password_disabled"
    when = "Email and password are turned off in this deployment."
    advice = "Ask the operator."
    message = "Signing in with email and password is turned off in this deployment, and so is the password reset."


class SessionExpired(LarderError):
    """A request to delete a user has no password, and its session is not fresh."""

    status = 400
    code = "session_expired"
    when = "A user can be deleted only with the password or with a fresh session."
    advice = "Sign in again, or send `password`."
    message = "Your sign-in is too old for this request. Sign in again, or send your password."


class SoleTeamOwner(LarderError):
    status = 400
    code = "sole_team_owner"
    when = "The user to delete is the only owner of a team. The message names the team."
    advice = "Make another member an owner, or delete the team."

    def __init__(self, slugs: list[str]) -> None:
        self.slugs = slugs
        teams = ", ".join(slugs)
        super().__init__(
            f"You are the only owner of {teams}. First make another member an owner, or delete the team."
        )


class LastOwner(LarderError):
    status = 409
    code = "last_owner"
    when = "The only owner of a team would leave it, be removed or get another role."
    advice = "Make another member an owner first."
    message = "This is the team's only owner. First make another member an owner."


class SlugTaken(LarderError):
    status = 409
    code = "slug_taken"
    when = "Another team has this slug, or had it before: a former slug still finds its team."
    advice = "Choose another slug."

    def __init__(self, slug: str) -> None:
        self.slug = slug
        super().__init__(f"Another team has the slug {slug}. Choose another one.")


class TeamLimitReached(LarderError):
    status = 409
    code = "team_limit_reached"
    when = "The user has reached the limit of teams that one user can create."
    advice = "Delete a team, or ask the operator to create one."
    message = "You have reached the limit of teams that you can create. Delete one, or ask the operator to create one."


class InvitationLimitReached(LarderError):
    status = 409
    code = "invitation_limit_reached"
    when = "The team has reached its limit of open invitations."
    advice = "Withdraw an invitation, or wait for one to be accepted or to expire."
    message = "The team has reached its invitation limit. Withdraw one, or wait for one to be accepted or to expire."


class PathNotFound(LarderError):
    status = 404
    code = "not_found"
    when = "There is no such path. Under `/api/auth` this reply has no body, and a browser gets a page."
    advice = "Compare the path with `GET /openapi.json`."
    message = "There is no such path. GET /openapi.json lists all paths."


class MethodNotAllowed(LarderError):
    status = 405
    code = "method_not_allowed"
    when = "The path does not support this method. `Allow` lists its methods. Pages support `GET`, but not `HEAD`."
    advice = "Use one of the methods in `Allow`."

    def __init__(self, methods: Iterable[str]) -> None:
        allowed = ", ".join(methods)
        self.headers = {"Allow": allowed}
        super().__init__(f"This path does not support the request's method. Use {allowed}.")


class DeleteUserDisabled(LarderError):
    """The reply has the status and code of a path that does not exist."""

    status = 404
    code = "not_found"
    when = "Users of this deployment cannot delete their account."
    advice = "Ask the operator."
    message = "Deleting your account is turned off in this deployment."


class InvalidLinkToken(LarderError):
    status = 400
    code = "invalid_token"
    when = "The token of a link is unknown, used or expired."
    advice = "Ask for a new link."
    message = "The link is not valid, was already used or has expired. Ask for a new one."


class NotLoopback(LarderError):
    """turbo can receive its token only at an address on the user's own computer."""

    status = 400
    code = "redirect_is_not_loopback"
    when = "The address that is to receive the token of `turbo login` is not on the user's own computer."
    advice = "Run `turbo login`. It uses the right address."
    message = (
        "The address that receives the token must be http://127.0.0.1:<port>, http://localhost:<port> or "
        "http://[::1]:<port>, with nothing after it."
    )


class InvalidLoginCode(LarderError):
    """A code of `turbo login --sso-team` is unknown, used or expired. The reply does not reveal which."""

    status = 401
    code = "invalid_login_code"
    when = "A code of `turbo login --sso-team` is unknown, used, or older than five minutes."
    advice = "Log in again."
    message = "The login is not valid, was already used or has expired. Run turbo login again."


class NameRequired(InvalidRequest):
    """This and the codes that follow are Better Auth's (docs/clients/better-auth.md#error-codes)."""

    code = "name_required"
    when = "This deployment requires a name for each key."
    advice = "Send a name."


class InvalidNameLength(InvalidRequest):
    code = "invalid_name_length"
    when = "The name of a key is too short or too long. The default bounds are 1 and 32 characters."
    advice = "Choose another name."


class InvalidPrefixLength(InvalidRequest):
    code = "invalid_prefix_length"
    when = (
        "The prefix of a key is too short or too long. The default bounds are 1 and 32 characters."
    )
    advice = "Choose another prefix."


class ExpiresInTooSmall(InvalidRequest):
    code = "expires_in_is_too_small"
    when = "The lifetime of a key is shorter than the deployment allows."
    advice = "Choose a longer lifetime."


class ExpiresInTooLarge(InvalidRequest):
    code = "expires_in_is_too_large"
    when = "The lifetime of a key is longer than the deployment allows, by default a year."
    advice = "Choose a shorter lifetime."


class KeyExpirationDisabled(InvalidRequest):
    code = "key_disabled_expiration"
    when = "This deployment gives every key the same lifetime."
    advice = "Leave out `expiresIn`."


class MetadataDisabled(InvalidRequest):
    code = "metadata_disabled"
    when = "This deployment stores no metadata with keys."
    advice = "Leave out `metadata`."


class InvalidMetadata(InvalidRequest):
    """Metadata is too long or too deep, or has property names that are dangerous for JavaScript readers."""

    code = "invalid_metadata_type"
    when = (
        "Metadata is longer than 10,000 characters of JSON, deeper than 20 levels, or has a property named "
        "`__proto__`, `constructor` or `prototype`."
    )
    advice = "Store it elsewhere, or rename the property."


class NoValuesToUpdate(LarderError):
    status = 400
    code = "no_values_to_update"
    when = "The body has no field to change in a key or a team."
    advice = "Send a field to change."
    message = "The body has no field to change."


class ServerOnlyProperty(LarderError):
    status = 400
    code = "server_only_property"
    when = "The body sets a limit of a key that only operators can set."
    advice = "Leave it out, or ask the operator."

    def __init__(self, field: str) -> None:
        super().__init__(f"{field} can only be set by an operator of this deployment.")


class InvalidApiKey(LarderError):
    status = 403
    code = "invalid_api_key"
    when = "The header for API keys holds a value that is shorter than a key."
    advice = "Send the whole key."
    message = "Invalid API key."


class PermissionNotHeld(LarderError):
    """Users cannot give a key more than they have themselves. The message names what exceeds that."""

    status = 403
    code = "permission_not_held"
    when = "A key would get a permission, a lifetime or uses that its creator does not have."
    advice = "Read the message and ask for less."


class KeyNotFound(LarderError):
    """Also sent for another user's key, so that nobody learns which ids exist."""

    status = 404
    code = "key_not_found"
    when = "There is no API key with this id, or it belongs to another user."
    advice = "List your keys with `/api/auth/api-key/list`."
    message = "There is no such API key."


class UsageExceeded(LarderError):
    status = 429
    code = "usage_exceeded"
    when = "The API key used in place of a session has no uses left until its next refill."
    advice = "Wait, or sign in."
    message = "This API key has no uses left until its next refill."


class SoftBlocked(LarderError):
    """The message includes the operator's reason, if there is one."""

    status = 402
    code = "account_soft_blocked"
    when = "The operator blocked the team or user. The message includes the operator's reason, if there is one."
    advice = "Ask the operator."
    message = "This account is blocked. Ask the operator of this cache for the reason."

    def __init__(self, reason: str | None = None) -> None:
        super().__init__(None if reason is None else f"This account is blocked: {reason}")


class PaymentMissing(LarderError):
    status = 402
    code = "payment_missing"
    when = "The operator marked a payment as missing. The message includes the operator's reason, if there is one."
    advice = "Ask the operator."
    message = "A payment for this account is missing. Ask the operator of this cache."

    def __init__(self, reason: str | None = None) -> None:
        super().__init__(
            None if reason is None else f"A payment for this account is missing: {reason}"
        )


class NotATeamMember(LarderError):
    """Also sent for a team that does not exist, so that nobody learns which teams exist."""

    status = 403
    code = "not_a_team_member"
    when = (
        "The user of the token is not a member of the team, the key is bound to another team, or the team does "
        "not exist."
    )
    advice = "Check `TURBO_TEAM`."
    message = (
        "The token's owner is not a member of this team, or the token is bound to another team."
    )


class ReadOnly(LarderError):
    status = 403
    code = "read_only"
    when = "The key may not write artifacts, or the member's role is VIEWER."
    advice = "Use a key that may write, or turn uploads off."
    message = "This token can read artifacts, but not write them."


class MissingPermission(LarderError):
    status = 403
    code = "missing_permission"
    when = "The key lacks the permission that the request needs."
    advice = "Ask for a key with this permission."
    message = "This token does not have the permission that the request needs."


class MissingRole(LarderError):
    status = 403
    code = "missing_role"
    when = "The caller's role in the team does not allow this."
    advice = "Ask an owner or admin of the team."
    message = "Your role in this team does not allow this."


class SessionRequired(LarderError):
    """The request has an API key, but only a signed-in user can make it."""

    status = 403
    code = "session_required"
    when = "The request has an API key, but only a signed-in user can make it."
    advice = "Sign in."
    message = "This request needs the session token of a signed-in user, not an API key."


class TeamCreationDisabled(LarderError):
    status = 403
    code = "team_creation_disabled"
    when = "Only operators can create teams in this deployment."
    advice = "Ask the operator."
    message = "Only operators can create teams in this deployment."


class InvitationForAnother(LarderError):
    status = 403
    code = "invitation_for_another_address"
    when = "The invitation was not sent to the signed-in user's address."
    advice = "Sign in or sign up with the invited address."
    message = "This invitation was sent to another email address. Sign in with that address."


class CachingDisabled(LarderError):
    status = 403
    code = "remote_caching_disabled"
    when = "Remote caching is disabled for the team."
    advice = "Ask an owner of the team."
    message = "Remote caching is disabled for this account."


class CachingPaused(LarderError):
    status = 403
    code = "remote_caching_paused"
    when = "Remote caching is paused for the team."
    advice = "Ask an owner of the team."
    message = "Remote caching is paused for this account."


class CachingOverLimit(LarderError):
    status = 403
    code = "remote_caching_over_limit"
    when = (
        "The storage quota is full, or the artifact does not fit into it, and `OverQuota` is `refuse`. Reads "
        "still work."
    )
    advice = "Wait until artifacts expire, or ask for a larger quota."
    message = "This account's storage quota is full. You can still read stored artifacts."


class LargerThanQuota(LarderError):
    """No eviction can make room for it. turbo keeps uploading smaller artifacts, unlike after `CachingOverLimit`."""

    status = 413
    code = "larger_than_quota"
    when = "The artifact alone is larger than the quota, and `OverQuota` is `evict`."
    advice = "Ask for a larger quota, or make the outputs of the task smaller."
    message = "This artifact alone is larger than this account's storage quota."


class TeamNotFound(LarderError):
    """Also sent for a team that the caller does not belong to, so that nobody learns which teams exist."""

    status = 404
    code = "team_not_found"
    when = (
        "The team does not exist, the caller is not a member, or the key is bound to another team."
    )
    advice = "List your teams with `GET /v2/teams`."
    message = "There is no such team, or you are not a member of it."


class MemberNotFound(LarderError):
    status = 404
    code = "member_not_found"
    when = "The team has no member and no open invitation with this id."
    advice = "List the members with `GET /v3/teams/{idOrSlug}/members`."
    message = "The team has no member and no open invitation with this id."


class InvitationNotFound(LarderError):
    status = 404
    code = "invitation_not_found"
    when = "The invitation is unknown, used, withdrawn, replaced or expired, or its sender may no longer invite."
    advice = "Ask for a new invitation."
    message = "The invitation is not valid, was already used or has expired. Ask for a new one."


class ArtifactNotFound(LarderError):
    status = 404
    code = "artifact_not_found"
    when = "There is no artifact with this hash, or it has expired."
    advice = "Nothing. The build runs and uploads it."
    message = "There is no artifact with this hash."


class RateLimited(LarderError):
    """The key's own rate limit. `Retry-After` is the time until its window ends, in whole seconds."""

    status = 429
    code = "rate_limited"
    when = "The key has reached its rate limit. `Retry-After` says in how many seconds its window ends."
    advice = "Wait, or ask for a key with a higher limit."
    message = "This token has reached its rate limit. Try again later."

    def __init__(self, try_again_in_ms: int) -> None:
        super().__init__()
        self.headers = {"Retry-After": str(-(-try_again_in_ms // 1000))}


class MissingOrNullOrigin(LarderError):
    status = 403
    code = "missing_or_null_origin"
    when = "A request to `/api/auth` has cookies, or signs in from a browser, but does not name the page that sends it."
    advice = "From a program, send `Origin`, or send no cookies."
    message = "The request has no origin. Send an Origin header, or send no cookies."


class InvalidOrigin(LarderError):
    status = 403
    code = "invalid_origin"
    when = "The page that sends the request is not from a trusted origin."
    advice = "Add its origin to `TrustedOrigins`."
    message = "The page that sends the request is not from a trusted origin."


class CrossSiteNavigation(LarderError):
    """A page of another site posts a form that signs its visitor in or out."""

    status = 403
    code = "cross_site_navigation_login_blocked"
    when = "A page of another site posts a form that signs its visitor in or out."
    advice = "Sign in and out by script, from a page of a trusted origin."
    message = "A page of another site cannot sign its visitors in or out."


class InvalidCallbackUrl(LarderError):
    status = 403
    code = "invalid_callback_url"
    when = "`callbackURL` leads to an origin that is not trusted."
    advice = "Use a path, or add the origin to `TrustedOrigins`."
    message = "callbackURL must be a path or lead to a trusted origin."


class InvalidRedirectUrl(InvalidCallbackUrl):
    code = "invalid_redirect_url"
    when = "`redirectTo` leads to an origin that is not trusted."
    advice = "Use a path, or add the origin to `TrustedOrigins`."
    message = "redirectTo must be a path or lead to a trusted origin."


class InvalidErrorCallbackUrl(InvalidCallbackUrl):
    code = "invalid_error_callback_url"
    when = "`errorCallbackURL` leads to an origin that is not trusted."
    advice = "Use a path, or add the origin to `TrustedOrigins`."
    message = "errorCallbackURL must be a path or lead to a trusted origin."


class InvalidNewUserCallbackUrl(InvalidCallbackUrl):
    code = "invalid_new_user_callback_url"
    when = "`newUserCallbackURL` leads to an origin that is not trusted."
    advice = "Use a path, or add the origin to `TrustedOrigins`."
    message = "newUserCallbackURL must be a path or lead to a trusted origin."


class TooManyRequests(LarderError):
    """The limit by client address and path. Its reply has no code: clients recognize it by that."""

    status = 429
    code = "too_many_requests"
    when = (
        "One client address sent too many requests to one path of `/api/auth`; that reply has no code. Or one "
        "user creates teams or invites people too often. `X-Retry-After` and `Retry-After` say how many seconds "
        "to wait."
    )
    advice = "Wait."
    message = "Too many requests. Please try again later."

    def __init__(self, retry_after_s: int) -> None:
        super().__init__()
        self.headers = {"X-Retry-After": str(retry_after_s), "Retry-After": str(retry_after_s)}


class TryAgain(LarderError):
    """DynamoDB or S3 did not answer in time.

    The request was not carried out, or its confirmation was lost. It is safe to send it again (docs/faults.md).
    """

    status = 503
    code = "try_again"
    when = "DynamoDB or S3 did not answer in time. The request was not carried out, or its confirmation was lost."
    advice = "Send it again after `Retry-After`. Build clients do."
    message = "A part of the service did not answer in time. Try again in a moment."
    headers = MappingProxyType({"Retry-After": "2"})


class MakingRoom(TryAgain):
    """The quota is full, and eviction is slower than the uploads."""

    status = 429
    code = "making_room"
    when = "The quota is full, and eviction is slower than the uploads."
    advice = "Nothing. The next build uploads it."
    message = "The storage quota is full. Larder is deleting old artifacts to make room. Try again in a moment."


class Throttled(TryAgain):
    """The same for the client. AWS refused the call because of too many requests."""


class Contention(TryAgain):
    """The same for the client. Nothing was written, because other transactions came first on every attempt."""


class InternalError(LarderError):
    """The reply to any unexpected exception. The log has the details under the request id."""

    status = 500
    code = "internal_error"
    when = "Something unexpected went wrong."
    advice = "Report it with the time. The log has the details."
    message = "Something went wrong on our side. The log has the details under the request id."


def _joined(problems: Iterable[str]) -> str:
    listed = list(problems)
    more = len(listed) - MAX_NAMED
    return "; ".join([*listed[:MAX_NAMED], *([f"and {more} more"] if more > 0 else [])])
