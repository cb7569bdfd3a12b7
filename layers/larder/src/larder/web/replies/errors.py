"""What clients see of each error: its status, code and headers, as JSON in the shape of each API.

Codes are part of the contract with clients; docs/errors.md explains them. turbo acts on `remote_caching_*` only. Some
versions post the stored token to another service when they read the code `forbidden`, so only UploadsForbidden has it
(docs/clients/turbo.md#status-codes). Functions that start without the resolver use this module, too.
"""

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NotRequired, TypedDict

from larder import errors
from larder.errors import InvalidValue, LarderError, ProviderRequired, TooManyRequests
from larder.web import errors as web_errors
from larder.web.errors import InvalidBody

_NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class ErrorReply:
    """How an error is sent. Headers are formatted with the error's own values.

    `text` replaces the error's message, or the rule of an InvalidValue, where clients read names of the API in it.
    """

    # A NamedTuple would take a fifth of a millisecond of each cold start.
    __slots__ = ("code", "headers", "status", "text")

    def __init__(
        self,
        status: int,
        code: str,
        headers: Mapping[str, str] = _NO_HEADERS,
        text: str | None = None,
    ) -> None:
        self.status = status
        self.code = code
        self.headers = headers
        self.text = text


_BAD_REQUEST = "bad_request"
_VALIDATION_ERROR = "validation_error"
_SOON = {"Retry-After": "2"}
_LATER = {"X-Retry-After": "{error.retry_after_s}", "Retry-After": "{error.retry_after_s}"}

REPLIES: Mapping[type[LarderError], ErrorReply] = {
    errors.InvalidValue: ErrorReply(400, _BAD_REQUEST),
    web_errors.InvalidRequest: ErrorReply(400, _BAD_REQUEST),
    web_errors.InvalidBody: ErrorReply(400, _VALIDATION_ERROR),
    web_errors.InvalidQuery: ErrorReply(400, _VALIDATION_ERROR),
    web_errors.UnsupportedMediaType: ErrorReply(415, "unsupported_media_type"),
    errors.Unauthenticated: ErrorReply(401, "unauthorized", {"WWW-Authenticate": "Bearer"}),
    errors.NotSignedIn: ErrorReply(401, "unauthorized"),
    web_errors.UnauthorizedSession: ErrorReply(401, "unauthorized_session"),
    web_errors.KeyForAnother: ErrorReply(401, "unauthorized_session"),
    web_errors.NotThroughProxy: ErrorReply(403, "not_through_proxy"),
    web_errors.NetworkNotAllowed: ErrorReply(403, "network_not_allowed"),
    errors.SessionNotFresh: ErrorReply(403, "session_not_fresh"),
    errors.OperatorOnly: ErrorReply(403, "operator_only"),
    errors.InvalidEmail: ErrorReply(400, "invalid_email"),
    errors.PasswordTooShort: ErrorReply(400, "password_too_short"),
    errors.PasswordTooLong: ErrorReply(400, "password_too_long"),
    errors.PasswordTooCommon: ErrorReply(400, "password_too_common"),
    errors.InvalidPassword: ErrorReply(400, "invalid_password"),
    errors.InvalidEmailOrPassword: ErrorReply(401, "invalid_email_or_password"),
    errors.ProviderRequired: ErrorReply(403, "sso_required"),
    errors.AddressIsLinked: ErrorReply(403, "email_can_not_be_updated"),
    errors.UserSuspended: ErrorReply(403, "user_suspended"),
    errors.EmailNotVerified: ErrorReply(403, "email_not_verified"),
    errors.EmailNotProven: ErrorReply(403, "email_not_proven"),
    errors.AddressTooLong: ErrorReply(
        400, _BAD_REQUEST, text="body: holds an address that is too long"
    ),
    errors.ProviderNotFound: ErrorReply(404, "provider_not_found"),
    errors.NoProviderFound: ErrorReply(404, "no_provider_found_for_the_issuer"),
    errors.AccountNotFound: ErrorReply(400, "account_not_found"),
    errors.LastAccount: ErrorReply(400, "failed_to_unlink_last_account"),
    web_errors.IdTokenNotSupported: ErrorReply(404, "id_token_not_supported"),
    errors.EmailPasswordDisabled: ErrorReply(400, "email_password_disabled"),
    errors.SignUpDisabled: ErrorReply(400, "email_password_sign_up_disabled"),
    errors.InvitationRequired: ErrorReply(400, "email_password_sign_up_disabled"),
    errors.SetupRefused: ErrorReply(400, "email_password_sign_up_disabled"),
    errors.EmailDomainNotAllowed: ErrorReply(400, "email_password_sign_up_disabled"),
    errors.UserAlreadyExists: ErrorReply(422, "user_already_exists_use_another_email"),
    web_errors.EmailCannotBeUpdated: ErrorReply(400, "email_can_not_be_updated"),
    web_errors.NoFieldsToUpdate: ErrorReply(400, "no_fields_to_update"),
    errors.InvalidVerificationToken: ErrorReply(401, "invalid_token"),
    errors.VerificationTokenExpired: ErrorReply(401, "token_expired"),
    errors.VerifiedUserNotFound: ErrorReply(401, "user_not_found"),
    errors.EmailMismatch: ErrorReply(400, "email_mismatch"),
    errors.EmailAlreadyVerified: ErrorReply(400, "email_already_verified"),
    errors.EmailUnchanged: ErrorReply(
        400, "email_is_the_same", text="newEmail is the user's current address."
    ),
    errors.ChangeEmailDisabled: ErrorReply(400, "change_email_disabled"),
    errors.ResetPasswordDisabled: ErrorReply(400, "reset_password_disabled"),
    errors.InvalidDeletionToken: ErrorReply(404, "invalid_token"),
    errors.SessionExpired: ErrorReply(400, "session_expired"),
    errors.SoleTeamOwner: ErrorReply(400, "sole_team_owner"),
    errors.LastOwner: ErrorReply(409, "last_owner"),
    errors.MembershipManaged: ErrorReply(409, "membership_managed"),
    errors.SlugTaken: ErrorReply(409, "slug_taken"),
    errors.TeamLimitReached: ErrorReply(409, "team_limit_reached"),
    errors.KeyLimitReached: ErrorReply(409, "key_limit_reached"),
    errors.InvitationLimitReached: ErrorReply(409, "invitation_limit_reached"),
    web_errors.PathNotFound: ErrorReply(404, "not_found"),
    web_errors.MethodNotAllowed: ErrorReply(
        405, "method_not_allowed", {"Allow": "{error.allowed}"}
    ),
    errors.DeleteUserDisabled: ErrorReply(404, "not_found"),
    errors.InvalidLinkToken: ErrorReply(400, "invalid_token"),
    web_errors.NotLoopback: ErrorReply(400, "redirect_is_not_loopback"),
    errors.InvalidLoginCode: ErrorReply(401, "invalid_login_code"),
    errors.NameRequired: ErrorReply(400, "name_required"),
    errors.InvalidNameLength: ErrorReply(400, "invalid_name_length"),
    errors.InvalidPrefixLength: ErrorReply(400, "invalid_prefix_length"),
    errors.ExpiresInTooSmall: ErrorReply(400, "expires_in_is_too_small"),
    errors.ExpiresInTooLarge: ErrorReply(400, "expires_in_is_too_large"),
    errors.KeyExpirationDisabled: ErrorReply(400, "key_disabled_expiration"),
    errors.MetadataDisabled: ErrorReply(400, "metadata_disabled"),
    errors.InvalidMetadata: ErrorReply(400, "invalid_metadata_type"),
    errors.RemainingRequired: ErrorReply(
        400, _BAD_REQUEST, text="is required with refillAmount and refillInterval"
    ),
    errors.NoValuesToUpdate: ErrorReply(
        400, "no_values_to_update", text="The body has no field to change."
    ),
    web_errors.ServerOnlyProperty: ErrorReply(400, "server_only_property"),
    web_errors.InvalidApiKey: ErrorReply(403, "invalid_api_key"),
    errors.PermissionNotHeld: ErrorReply(403, "permission_not_held"),
    errors.NotInOrganization: ErrorReply(403, "user_not_member_of_organization"),
    errors.CannotManageTeamKeys: ErrorReply(403, "insufficient_api_key_permissions"),
    web_errors.OrganizationIdRequired: ErrorReply(400, "organization_id_required"),
    errors.KeyNotFound: ErrorReply(404, "key_not_found"),
    errors.UsageExceeded: ErrorReply(429, "usage_exceeded"),
    errors.SoftBlocked: ErrorReply(402, "account_soft_blocked"),
    errors.PaymentMissing: ErrorReply(402, "payment_missing"),
    errors.NotATeamMember: ErrorReply(403, "not_a_team_member"),
    errors.InvalidTeam: ErrorReply(403, "invalid_team"),
    errors.TeamsDiffer: ErrorReply(403, "teams_differ"),
    errors.ReadOnly: ErrorReply(403, "read_only"),
    errors.PublicReadOnly: ErrorReply(403, "read_only"),
    errors.UploadsForbidden: ErrorReply(403, "forbidden"),
    errors.MissingPermission: ErrorReply(403, "missing_permission"),
    errors.MissingRole: ErrorReply(403, "missing_role"),
    errors.SessionRequired: ErrorReply(403, "session_required"),
    errors.TeamCreationDisabled: ErrorReply(403, "team_creation_disabled"),
    errors.InvitationForAnother: ErrorReply(403, "invitation_for_another_address"),
    errors.CachingDisabled: ErrorReply(403, "remote_caching_disabled"),
    errors.CachingPaused: ErrorReply(403, "remote_caching_paused"),
    errors.CachingOverLimit: ErrorReply(403, "remote_caching_over_limit"),
    errors.SignatureRequired: ErrorReply(403, "signature_required"),
    errors.ScopesFull: ErrorReply(403, "remote_caching_over_limit"),
    errors.StorageFull: ErrorReply(403, "storage_full"),
    errors.UnprovenCannotStore: ErrorReply(403, "email_not_proven"),
    # Not 413, because turbo shows only the messages of 403.
    errors.LargerThanQuota: ErrorReply(403, "larger_than_quota"),
    errors.RunTooLarge: ErrorReply(413, "run_too_large"),
    errors.TeamNotFound: ErrorReply(404, "team_not_found"),
    errors.MemberNotFound: ErrorReply(404, "member_not_found"),
    errors.InvitationNotFound: ErrorReply(404, "invitation_not_found"),
    errors.ArtifactNotFound: ErrorReply(404, "artifact_not_found"),
    errors.RateLimited: ErrorReply(429, "rate_limited", {"Retry-After": "{error.retry_after_s}"}),
    web_errors.MissingOrNullOrigin: ErrorReply(403, "missing_or_null_origin"),
    web_errors.InvalidOrigin: ErrorReply(403, "invalid_origin"),
    web_errors.CrossSiteNavigation: ErrorReply(403, "cross_site_navigation_login_blocked"),
    web_errors.InvalidCallbackUrl: ErrorReply(403, "invalid_callback_url"),
    web_errors.InvalidRedirectUrl: ErrorReply(403, "invalid_redirect_url"),
    web_errors.InvalidErrorCallbackUrl: ErrorReply(403, "invalid_error_callback_url"),
    web_errors.InvalidNewUserCallbackUrl: ErrorReply(403, "invalid_new_user_callback_url"),
    errors.ExchangeRefused: ErrorReply(400, "invalid_request"),
    errors.IdTokenSpent: ErrorReply(400, "invalid_request"),
    errors.UnsupportedGrantType: ErrorReply(400, "unsupported_grant_type"),
    errors.InvalidTarget: ErrorReply(400, "invalid_target"),
    errors.IssuerUnavailable: ErrorReply(503, "temporarily_unavailable", _SOON),
    errors.RuleNotFound: ErrorReply(404, "rule_not_found"),
    errors.RunNotFound: ErrorReply(404, "run_not_found"),
    errors.RuleExists: ErrorReply(409, "rule_exists"),
    errors.RuleLimitReached: ErrorReply(409, "rule_limit_reached"),
    errors.TooManyRequests: ErrorReply(429, "too_many_requests", _LATER),
    errors.TooManyWrongPasswords: ErrorReply(429, "too_many_requests", _LATER),
    errors.TryAgain: ErrorReply(503, "try_again", _SOON),
    errors.EvictionInProgress: ErrorReply(429, "making_room", _SOON),
    errors.Contention: ErrorReply(503, "try_again", _SOON),
    web_errors.InternalError: ErrorReply(500, "internal_error"),
}
"""Every error. `/api/auth` sends the codes in upper case; many are Better Auth's
(docs/clients/better-auth.md#error-codes).
"""


class ErrorDetailJson(TypedDict):
    code: str
    message: str


class ErrorJson(ErrorDetailJson):
    """An error. Build clients read the nested part."""

    error: ErrorDetailJson


class RequiredProviderJson(TypedDict):
    """The id of the provider to sign in with."""

    provider: str


class AuthErrorJson(TypedDict):
    """An error of `/api/auth`. `code` is missing if one address sent too many requests to one path.

    `details` comes with `SSO_REQUIRED`.
    """

    message: str
    code: NotRequired[str]
    details: NotRequired[RequiredProviderJson]


class OAuthErrorJson(TypedDict):
    """An error of the token endpoints, as OAuth defines it (RFC 6749)."""

    error: str
    error_description: str


def status_of(error: LarderError) -> int:
    return REPLIES[type(error)].status


def code_of(error: LarderError) -> str:
    return REPLIES[type(error)].code


def headers_of(error: LarderError) -> dict[str, str]:
    headers = REPLIES[type(error)].headers
    return {name: value.format(error=error) for name, value in headers.items()}


def auth_code(error: type[LarderError]) -> str:
    code = _VALIDATION_ERROR if _is_plain(error) else REPLIES[error].code
    return code.upper()


def oauth_code(error: type[LarderError]) -> str:
    """The code of an error at a token endpoint, of RFC 6749 where it has one."""
    reply = REPLIES[error]
    if reply.code == _BAD_REQUEST:
        return "invalid_request"
    return "temporarily_unavailable" if reply.status == 503 else reply.code


def plain_reply(error: LarderError, *, path: str) -> dict[str, Any]:
    """The reply of a function without the resolver, in the shape of the API that the path belongs to."""
    shape: Callable[[LarderError], Mapping[str, Any]] = vercel_error
    if is_auth_path(path):
        shape = better_auth_error
    elif path.startswith("/login/oauth/"):
        shape = oauth_error
    return {
        "statusCode": status_of(error),
        "headers": {"Content-Type": "application/json", **headers_of(error)},
        "body": json.dumps(shape(error)),
    }


def is_auth_path(path: str) -> bool:
    return f"{path}/".startswith("/api/auth/")


def vercel_error(error: LarderError) -> ErrorJson:
    """The build client parses the nested shape, and other clients the flat one."""
    detail: ErrorDetailJson = {"code": code_of(error), "message": _message_of(error)}
    return {"error": detail, **detail}


def better_auth_error(error: LarderError) -> AuthErrorJson:
    """The flat shape that the Better Auth client parses; its codes are in upper case."""
    body: AuthErrorJson = {"message": _message_of(error, in_auth=True)}
    # Clients recognize this error by its missing code.
    if not isinstance(error, TooManyRequests):
        body["code"] = auth_code(type(error))
    if isinstance(error, ProviderRequired):
        body["details"] = {"provider": error.provider_id}
    return body


def oauth_error(error: LarderError) -> OAuthErrorJson:
    return {"error": oauth_code(type(error)), "error_description": _message_of(error)}


def _message_of(error: LarderError, *, in_auth: bool = False) -> str:
    text = REPLIES[type(error)].text
    if not isinstance(error, InvalidValue):
        return text or error.message
    field, rule = _wire_name(error.field), text or error.rule
    if in_auth and _is_plain(type(error)):
        return InvalidBody(field, rule).message
    return f"{field}: {rule}"


def _is_plain(error: type[LarderError]) -> bool:
    """Whether it is an invalid value without a code of its own. In `/api/auth`, it looks like an InvalidBody."""
    return issubclass(error, InvalidValue) and REPLIES[error].code == _BAD_REQUEST


def _wire_name(field: str) -> str:
    """The name of a field in bodies and queries: `user_id` is `userId`."""
    first, *others = field.split("_")
    return "".join([first, *(word.capitalize() for word in others)])
