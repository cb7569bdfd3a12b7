"""Why a sign-in with a provider ends without a session."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from larder.sso.models import Identity
    from larder.sso.state import PendingSignIn


class Refusal(StrEnum):
    """The codes that a page gets as `?error=`. Those of Better Auth come first, then two of providers, then our own.

    No text of a provider is ever passed on: a stranger could write it onto our page.
    """

    STATE_NOT_FOUND = "state_not_found"
    STATE_MISMATCH = "state_mismatch"
    NO_CODE = "no_code"
    INVALID_CODE = "invalid_code"
    ISSUER_MISMATCH = "issuer_mismatch"
    ISSUER_MISSING = "issuer_missing"
    PROVIDER_NOT_FOUND = "oauth_provider_not_found"
    INVALID_REQUEST = "invalid_callback_request"
    EMAIL_NOT_FOUND = "email_not_found"
    ACCOUNT_NOT_LINKED = "account_not_linked"
    SIGN_UP_DISABLED = "signup_disabled"
    EMAIL_DOES_NOT_MATCH = "email_does_not_match"
    LINKED_TO_ANOTHER = "account_already_linked_to_different_user"
    UNABLE_TO_LINK = "unable_to_link_account"
    EMAIL_NOT_VERIFIED = "email_not_verified"
    ACCESS_DENIED = "access_denied"
    LOGIN_REQUIRED = "login_required"
    PROVIDER_ERROR = "provider_error"
    INVALID_ID_TOKEN = "invalid_id_token"  # noqa: S105  # a code
    PROVIDER_UNAVAILABLE = "provider_unavailable"
    REAUTHENTICATION_MISSING = "reauthentication_missing"
    USER_SUSPENDED = "user_suspended"
    PROVIDER_REQUIRED = "sso_required"


class SignInRefused(Exception):
    """A sign-in ends without a session. `code` is for the page, and `reason` for the log; it has no value of a token.

    `pending` is the sign-in, if the request has a valid state, and `identity` the person, once all checks are passed.
    """

    def __init__(self, code: Refusal, reason: str = "") -> None:
        self.code = code
        self.reason = reason or code.value
        self.pending: PendingSignIn | None = None
        self.identity: Identity | None = None
        super().__init__(code.value)
