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
    when: ClassVar[str]
    """When a request is answered so, for docs/errors.md."""
    advice: ClassVar[str]
    """What the client can do about it, for docs/errors.md."""
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
    when = "A value in the path, the query, the headers or the body breaks a rule."
    advice = "Read the message. It names the value."

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
    when = "A field of a body sent to `/api/auth` breaks a rule."
    advice = "Read the message. It names every such field."

    def __init__(self, field: str, rule: str, *others: tuple[str, str]) -> None:
        self.field = field
        told = (f"[body.{name}] {broken}" for name, broken in [(field, rule), *others])
        super().__init__(_told(told))


class InvalidQuery(LarderError):
    """The same for a parameter of the query."""

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
    """There is no credential, or it is malformed, unknown, disabled, expired or revoked. Which one is not told."""

    status = 401
    code = "unauthorized"
    when = "The token is missing, malformed, unknown, disabled, expired, revoked or used up."
    advice = "Sign in, or ask the operator for a new key."
    message = "A valid bearer token is required: it is missing, unknown, expired or revoked."
    headers = MappingProxyType({"WWW-Authenticate": "Bearer"})


class NotSignedIn(LarderError):
    """Nobody is signed in: there is no session, or it is unknown, expired or ended. The reply does not say which."""

    status = 401
    code = "unauthorized"
    when = (
        "Under `/api/auth`, nobody is signed in: the session is missing, unknown, expired or ended. Or the key that "
        "stands for a session is not valid, or may not do this."
    )
    advice = "Sign in."
    message = "You need to be signed in."


class UnauthorizedSession(NotSignedIn):
    """The same where a key is made or changed: Better Auth has a code of its own there."""

    code = "unauthorized_session"
    when = "A key is created or changed without a session, or the session is unknown, expired or ended."
    advice = "Sign in."


class KeyForAnother(UnauthorizedSession):
    """Somebody who is no operator names another as the owner of a key. Taking it was CVE-2025-61928."""

    when = "A caller who is not an operator names another user as the owner of a key."
    advice = "Leave out `userId`."
    message = (
        "userId: you can make and change keys for yourself only. Operators alone do so for others."
    )


class SessionNotFresh(LarderError):
    status = 403
    code = "session_not_fresh"
    when = "The session is too old for this request, by default older than a day."
    advice = "Sign in again."
    message = "You signed in too long ago for this. Sign in again."


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
        super().__init__(f"{field}: must be an e-mail address")


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
    """Somebody who is signed in gave a wrong password."""

    status = 400
    code = "invalid_password"
    when = "A signed-in user sent a wrong current password."
    advice = "Try again, or reset the password."
    message = "The password is wrong."


class InvalidEmailOrPassword(LarderError):
    """Also the answer for an address that nobody has: what is wrong is not told."""

    status = 401
    code = "invalid_email_or_password"
    when = "The address is unknown or the password is wrong. The reply does not say which."
    advice = "Try again, or reset the password."
    message = "The e-mail address or the password is wrong."


class EmailNotVerified(LarderError):
    """Only told to somebody who knows the password."""

    status = 403
    code = "email_not_verified"
    when = "The password is correct, but the address must be verified first. A new link was sent."
    advice = "Open the link in the mail."
    message = "The e-mail address is not verified yet. A new link is on its way to it."


class EmailPasswordDisabled(LarderError):
    status = 400
    code = "email_password_disabled"
    when = "Email and password are turned off in this deployment."
    advice = "Ask the operator."
    message = "Signing in with e-mail and password is switched off here."


class SignUpDisabled(LarderError):
    status = 400
    code = "email_password_sign_up_disabled"
    when = "Sign-up is turned off in this deployment."
    advice = "Ask the operator to add you."
    message = "Signing up is switched off here. The operator can add you."


class EmailDomainNotAllowed(SignUpDisabled):
    """Which domains are allowed is not told: it would tell strangers whose addresses to try."""

    when = "Addresses of this domain may not sign up."
    advice = "Ask the operator to add you."
    message = "Addresses of this domain cannot sign up here. The operator can add you."


class UserAlreadyExists(LarderError):
    status = 422
    code = "user_already_exists_use_another_email"
    when = "A user has this address already."
    advice = "Sign in, or use another address."
    message = "There is a user with this e-mail address. Use another one, or sign in."


class EmailCannotBeUpdated(LarderError):
    status = 400
    code = "email_can_not_be_updated"
    when = "`/update-user` got an email address."
    advice = "Use `/change-email`."
    message = "The e-mail address has an endpoint of its own: /change-email."


class NoFieldsToUpdate(LarderError):
    status = 400
    code = "no_fields_to_update"
    when = "`/update-user` got neither a name nor a picture."
    advice = "Send `name` or `image`."
    message = "No fields to update"


class InvalidVerificationToken(LarderError):
    """A verification link was not made here, or leads to what has been overtaken."""

    status = 401
    code = "invalid_token"
    when = (
        "A verification link was not made by this deployment. Or it leads to a new address, and the password was "
        "changed or the sessions were ended since."
    )
    advice = "Ask for a new link."
    message = "The link is not valid. Ask for a new one."


class VerificationTokenExpired(InvalidVerificationToken):
    code = "token_expired"
    when = "A verification link has expired."
    advice = "Ask for a new link."
    message = "The link is too old. Ask for a new one."


class VerifiedUserNotFound(InvalidVerificationToken):
    code = "user_not_found"
    when = "A verification link is genuine, but its user is deleted or has another address."
    advice = "Sign up, or ask for a new link."
    message = "The link is genuine, but its user is gone or has another address by now."


class EmailMismatch(LarderError):
    status = 400
    code = "email_mismatch"
    when = "A signed-in user asked to verify another address."
    advice = "Sign out first."
    message = "This is not the e-mail address of who is signed in."


class EmailAlreadyVerified(LarderError):
    status = 400
    code = "email_already_verified"
    when = "The address of the signed-in user is verified already."
    advice = "Nothing."
    message = "The e-mail address is verified already."


class EmailUnchanged(LarderError):
    status = 400
    code = "email_is_the_same"
    when = "The new address is the current address."
    advice = "Nothing."
    message = "newEmail is the address that the user has."


class ChangeEmailDisabled(LarderError):
    status = 400
    code = "change_email_disabled"
    when = "Users of this deployment cannot change their address."
    advice = "Ask the operator."
    message = "Changing the e-mail address is switched off here."


class ResetPasswordDisabled(LarderError):
    status = 400
    code = "reset_password_disabled"
    when = "Email and password are turned off in this deployment."
    advice = "Ask the operator."
    message = "Signing in with e-mail and password is switched off here, and so is resetting one."


class SessionExpired(LarderError):
    """Deleting a user asks for their password, or for a session that began lately."""

    status = 400
    code = "session_expired"
    when = "Deleting a user takes the password or a fresh session."
    advice = "Sign in again."
    message = "You signed in too long ago for this. Sign in again, or send your password along."


class SoleTeamOwner(LarderError):
    status = 400
    code = "sole_team_owner"
    when = "The user to delete is the only owner of a team. The message names the team."
    advice = "Make another member an owner, or delete the team."

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
    when = "The only owner of a team would leave it, be removed or get another role."
    advice = "Make another member an owner first."
    message = "This is the team's only owner. Make somebody else an owner first."


class SlugTaken(LarderError):
    """Another team has the slug, or had it and is still reached by it."""

    status = 409
    code = "slug_taken"
    when = "Another team has this slug, or had it and still redirects from it."
    advice = "Choose another slug."

    def __init__(self, slug: str) -> None:
        self.slug = slug
        super().__init__(f"Another team has the slug {slug}. Choose another one.")


class TeamLimitReached(LarderError):
    status = 409
    code = "team_limit_reached"
    when = "The user has created as many teams as one user may."
    advice = "Delete a team, or ask the operator for one."
    message = "You have made as many teams as one person may. Delete one, or ask the operator for another."


class InvitationLimitReached(LarderError):
    status = 409
    code = "invitation_limit_reached"
    when = "The team has as many open invitations as it may."
    advice = "Withdraw an invitation, or wait."
    message = "The team has as many open invitations as it may. Withdraw one, or wait until one is used or over."


class PathNotFound(LarderError):
    status = 404
    code = "not_found"
    when = "There is no such path. Under `/api/auth` this reply has no body, and a browser gets a page."
    advice = "Compare the path with `GET /openapi.json`."
    message = "There is no such path. GET /openapi.json lists those that exist."


class MethodNotAllowed(LarderError):
    """The path takes other methods, which `Allow` lists."""

    status = 405
    code = "method_not_allowed"
    when = "The path does not take this method. `Allow` lists the methods that it takes. Pages take `GET`, not `HEAD`."
    advice = "Use one of these methods."

    def __init__(self, methods: Iterable[str]) -> None:
        allowed = ", ".join(methods)
        self.headers = {"Allow": allowed}
        super().__init__(f"This path does not take the method of the request. It takes {allowed}.")


class DeleteUserDisabled(LarderError):
    """Told like a path that does not exist."""

    status = 404
    code = "not_found"
    when = "Users of this deployment cannot delete their account."
    advice = "Ask the operator."
    message = "Deleting users is switched off here."


class InvalidLinkToken(LarderError):
    """The token of a link is unknown, used, or past its time."""

    status = 400
    code = "invalid_token"
    when = "The token of a link is unknown, used or expired."
    advice = "Ask for a new link."
    message = "The link is not valid, or not any more. Ask for a new one."


class NotLoopback(LarderError):
    """A build client is told its token at an address of the computer that its user sits at, and nowhere else."""

    status = 400
    code = "redirect_is_not_loopback"
    when = "`turbo login` asks to send its token to an address that is not on the same computer."
    advice = "Run `turbo login`. It uses the right address."
    message = (
        "The address to send the token to must be http://127.0.0.1:<port>, http://localhost:<port> or "
        "http://[::1]:<port>, with nothing after it."
    )


class InvalidLoginCode(LarderError):
    """A code of `turbo login --sso-team` is unknown, used, or past its time. Which of them is not told."""

    status = 401
    code = "invalid_login_code"
    when = "A code of `turbo login --sso-team` is unknown, used, or older than five minutes."
    advice = "Log in again."
    message = "The login is not valid, or not any more. Run turbo login again."


class NameRequired(InvalidRequest):
    """The first of the codes that clients of API keys know (docs/clients/better-auth.md#error-codes)."""

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
    """Metadata that cannot be kept: too long, too deep, or with names that harm who reads them."""

    code = "invalid_metadata_type"
    when = (
        "Metadata is longer than 10,000 characters of JSON, deeper than 20 levels, or has a property named "
        "`__proto__`, `constructor` or `prototype`."
    )
    advice = "Store it elsewhere, or rename the property."


class NoValuesToUpdate(LarderError):
    status = 400
    code = "no_values_to_update"
    when = "The body names nothing to change in a key or a team."
    advice = "Send a field to change."
    message = "The body names no property that is to change."


class ServerOnlyProperty(LarderError):
    """A property of a key that only an operator may set."""

    status = 400
    code = "server_only_property"
    when = "The body sets a limit of a key, which only operators may."
    advice = "Leave it out, or ask the operator."

    def __init__(self, field: str) -> None:
        super().__init__(f"{field} can only be set by an operator of this deployment.")


class InvalidApiKey(LarderError):
    """What was sent as a key is too short to be one."""

    status = 403
    code = "invalid_api_key"
    when = "The header for API keys holds a value that is shorter than a key."
    advice = "Send the whole key."
    message = "Invalid API key."


class PermissionNotHeld(LarderError):
    """Nobody gives a key more than they hold themselves. The message tells what is too much."""

    status = 403
    code = "permission_not_held"
    when = "A key would get a permission, a lifetime or uses that its maker does not have."
    advice = "Read the message and ask for less."


class KeyNotFound(LarderError):
    """Also the answer for somebody else's key, so that nobody learns which ids there are."""

    status = 404
    code = "key_not_found"
    when = "There is no API key with this id, or it belongs to another user."
    advice = "List your keys with `/api/auth/api-key/list`."
    message = "There is no such API key."


class UsageExceeded(LarderError):
    """The key that was presented has no uses left until its next refill."""

    status = 429
    code = "usage_exceeded"
    when = "The key that stands for a session has no uses left until its next refill."
    advice = "Wait, or sign in."
    message = "This API key has no uses left until its next refill."


class SoftBlocked(LarderError):
    """The operator's reason, where they gave one, is for whoever is blocked to read."""

    status = 402
    code = "account_soft_blocked"
    when = "The operator blocked the team or user. The message is the operator's reason, if there is one."
    advice = "Ask the operator."
    message = "This account is blocked. The operator of this cache can tell why and lift the block."

    def __init__(self, reason: str | None = None) -> None:
        super().__init__(None if reason is None else f"This account is blocked: {reason}")


class PaymentMissing(LarderError):
    status = 402
    code = "payment_missing"
    when = "The operator marked a payment as missing. The message is the operator's reason, if there is one."
    advice = "Ask the operator."
    message = "A payment for this account is missing. Update the payment method with the operator of this cache."

    def __init__(self, reason: str | None = None) -> None:
        super().__init__(
            None if reason is None else f"A payment for this account is missing: {reason}"
        )


class NotATeamMember(LarderError):
    """Also the answer for a team that does not exist, so that nobody learns which teams do."""

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
    message = "This token may read artifacts but not write them."


class MissingPermission(LarderError):
    status = 403
    code = "missing_permission"
    when = "The key lacks the permission that the request needs."
    advice = "Ask for a key with this permission."
    message = "This token does not hold the permission that the request needs."


class MissingRole(LarderError):
    """The caller is a member of the team, but not of a role that may do this."""

    status = 403
    code = "missing_role"
    when = "The caller's role in the team does not allow this."
    advice = "Ask an owner or admin of the team."
    message = "Your role in this team does not allow this."


class SessionRequired(LarderError):
    """An API key was presented where a person has to act."""

    status = 403
    code = "session_required"
    when = "The request has an API key, but takes a signed-in user."
    advice = "Sign in."
    message = "This takes the token of somebody who is signed in; an API key does not do."


class TeamCreationDisabled(LarderError):
    status = 403
    code = "team_creation_disabled"
    when = "Only operators create teams in this deployment."
    advice = "Ask the operator."
    message = "Only operators make teams here."


class InvitationForAnother(LarderError):
    """The invitation is good, but the address that it was sent to is not that of who presents it."""

    status = 403
    code = "invitation_for_another_address"
    when = "The invitation was sent to another address than the signed-in user's."
    advice = "Sign in or sign up with the invited address."
    message = (
        "This invitation was sent to another e-mail address than yours. Sign in with that one."
    )


class CachingDisabled(LarderError):
    status = 403
    code = "remote_caching_disabled"
    when = "Remote caching is disabled for the team."
    advice = "Ask an owner of the team."
    message = "Remote caching is switched off for this account."


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
    message = "The storage quota of this account is used up. Stored artifacts can still be read."


class LargerThanQuota(LarderError):
    """No eviction makes room for it. Not the code that ends a client's uploads: smaller artifacts are welcome."""

    status = 413
    code = "larger_than_quota"
    when = "The artifact alone is larger than the quota, and `OverQuota` is `evict`."
    advice = "Ask for a larger quota, or make the outputs of the task smaller."
    message = "This artifact alone is larger than the storage quota of this account."


class TeamNotFound(LarderError):
    """Also the answer for a team that the caller does not belong to, so that nobody learns which teams there are."""

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
    message = "The team has no such member, and no such open invitation."


class InvitationNotFound(LarderError):
    """The token of an invitation is unknown, used, withdrawn, or past its time; or who invited may no longer do so."""

    status = 404
    code = "invitation_not_found"
    when = "The invitation is unknown, used, withdrawn, replaced or expired, or its sender may no longer invite."
    advice = "Ask for a new invitation."
    message = "The invitation is not valid, or not any more. Ask for a new one."


class ArtifactNotFound(LarderError):
    status = 404
    code = "artifact_not_found"
    when = "There is no artifact with this hash, or it has expired."
    advice = "Nothing. The build runs and uploads it."
    message = "There is no artifact with this hash."


class RateLimited(LarderError):
    """The key's own rate limit. `Retry-After` tells, in whole seconds, when its window is over."""

    status = 429
    code = "rate_limited"
    when = "The key was used as often as its rate limit allows. `Retry-After` says when its window ends."
    advice = "Wait, or ask for a key with a higher limit."
    message = "This token has been used as often as its rate limit allows. Try again later."

    def __init__(self, try_again_in_ms: int) -> None:
        super().__init__()
        self.headers = {"Retry-After": str(-(-try_again_in_ms // 1000))}


class MissingOrNullOrigin(LarderError):
    status = 403
    code = "missing_or_null_origin"
    when = "A request to `/api/auth` has cookies, or signs in from a browser, but does not say which page sends it."
    advice = "From a program, send `Origin`, or send no cookies."
    message = "The request must tell the origin of the page that sends it."


class InvalidOrigin(LarderError):
    status = 403
    code = "invalid_origin"
    when = "The page that sends the request is not from a trusted origin."
    advice = "Add its origin to `TrustedOrigins`."
    message = "The page that sends the request is of no trusted origin."


class CrossSiteNavigation(LarderError):
    """A page of another site posts a sign-in or a sign-out as if its visitor had."""

    status = 403
    code = "cross_site_navigation_login_blocked"
    when = "A page of another site posts a form that signs its visitor in or out."
    advice = "Sign in and out by script, from a page of a trusted origin."
    message = "A page of another site may not sign its visitors in or out."


class InvalidCallbackUrl(LarderError):
    """A URL to return to that would lead to an origin that is not trusted."""

    status = 403
    code = "invalid_callback_url"
    when = "`callbackURL` leads to an origin that is not trusted."
    advice = "Use a path, or add the origin to `TrustedOrigins`."
    message = "callbackURL leads to no trusted origin."


class InvalidRedirectUrl(InvalidCallbackUrl):
    code = "invalid_redirect_url"
    when = "`redirectTo` leads to an origin that is not trusted."
    advice = "Use a path, or add the origin to `TrustedOrigins`."
    message = "redirectTo leads to no trusted origin."


class InvalidErrorCallbackUrl(InvalidCallbackUrl):
    code = "invalid_error_callback_url"
    when = "`errorCallbackURL` leads to an origin that is not trusted."
    advice = "Use a path, or add the origin to `TrustedOrigins`."
    message = "errorCallbackURL leads to no trusted origin."


class InvalidNewUserCallbackUrl(InvalidCallbackUrl):
    code = "invalid_new_user_callback_url"
    when = "`newUserCallbackURL` leads to an origin that is not trusted."
    advice = "Use a path, or add the origin to `TrustedOrigins`."
    message = "newUserCallbackURL leads to no trusted origin."


class TooManyRequests(LarderError):
    """The limit by client address and path. Its reply has no code, which is how the client knows it."""

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
    """A store that the answer depends on did not answer in time.

    What was asked for is not done, or its confirmation got lost: the same request may be sent again (docs/faults.md).
    """

    status = 503
    code = "try_again"
    when = "DynamoDB or S3 did not answer in time. The request was not carried out, or its confirmation was lost."
    advice = "Send it again after `Retry-After`. Build clients do."
    message = "A part of the service did not answer in time. Try again in a moment."
    headers = MappingProxyType({"Retry-After": "2"})


class MakingRoom(TryAgain):
    """The quota is full, and what was used longest ago goes to make room, but not as fast as uploads come."""

    status = 429
    code = "making_room"
    when = "The quota is full, and eviction is slower than the uploads."
    advice = "Nothing. The next build uploads it."
    message = "The storage quota is full, and room is being made for new artifacts. Try again in a moment."


class Throttled(TryAgain):
    """The same for the client; inside, a store that is too busy can be asked in another way."""


class Contention(TryAgain):
    """The same for the client; inside, nothing was done, because other transactions came first each time."""


class InternalError(LarderError):
    """What the client sees of an error that nobody foresaw; the log has the rest under the request id."""

    status = 500
    code = "internal_error"
    when = "Something unexpected went wrong."
    advice = "Report it with the time. The log has the id of the request."
    message = "Something went wrong on our side. The request id finds it in the log."


def _told(broken: Iterable[str]) -> str:
    told = list(broken)
    more = len(told) - MAX_TOLD
    return "; ".join([*told[:MAX_TOLD], *([f"and {more} more"] if more > 0 else [])])
