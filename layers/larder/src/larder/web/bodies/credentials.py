"""The JSON bodies of endpoints that prove or change a credential, parsed and checked."""

from dataclasses import dataclass

from pydantic import Field

from larder.accounts.models import PasswordChange
from larder.errors import InvalidDeletionToken, InvalidLinkToken
from larder.web.bodies.better_auth import parsed
from larder.web.bodies.model import BodyModel
from larder.web.declared import text
from larder.web.powertools.resolver import Request


class _SendVerification(BodyModel):
    email: str
    callback_url: str | None = Field(None, alias="callbackURL")


class _RequestReset(BodyModel):
    email: str
    redirect_to: str | None = Field(None, alias="redirectTo")


class _ResetPassword(BodyModel):
    new_password: str = Field(alias="newPassword")
    token: str | None = None


class _ChangePassword(BodyModel):
    new_password: str = Field(alias="newPassword")
    current_password: str = Field(alias="currentPassword")
    revoke_other_sessions: bool | None = Field(None, alias="revokeOtherSessions")
    revoke_api_keys: bool | None = Field(None, alias="revokeApiKeys")


class _ChangeEmail(BodyModel):
    new_email: str = Field(alias="newEmail")
    callback_url: str | None = Field(None, alias="callbackURL")
    password: str | None = None


class _ConfirmEmailChange(BodyModel):
    token: str


class _DeleteUser(BodyModel):
    password: str | None = None
    token: str | None = None


@dataclass(frozen=True, slots=True)
class LinkWanted:
    """The address that gets a link, and the URL that the link finally leads to, empty for none."""

    email: str
    callback_url: str


@dataclass(frozen=True, slots=True)
class WantedEmail(LinkWanted):
    """The same with the password, which a user whose session is not fresh must send."""

    password: str | None


@dataclass(frozen=True, slots=True)
class NewPassword:
    token: str
    password: str


def verification_wanted(request: Request) -> LinkWanted:
    """`{"email", "callbackURL"?}`"""
    body = parsed(request, _SendVerification)
    return LinkWanted(body.email, body.callback_url or "")


def reset_wanted(request: Request) -> LinkWanted:
    """`{"email", "redirectTo"?}`"""
    body = parsed(request, _RequestReset)
    return LinkWanted(body.email, body.redirect_to or "")


def new_email(request: Request) -> WantedEmail:
    """`{"newEmail", "callbackURL"?, "password"?}`"""
    body = parsed(request, _ChangeEmail)
    return WantedEmail(body.new_email, body.callback_url or "", body.password)


TOKEN = text("token", "The token of the link, if the body has none.")


def new_password(request: Request) -> NewPassword:
    """`{"newPassword", "token"?}`. The token can be in the query instead. Raises InvalidLinkToken without one."""
    body = parsed(request, _ResetPassword)
    token = body.token or TOKEN(request)
    if not token:
        raise InvalidLinkToken
    return NewPassword(token, body.new_password)


def password_change(request: Request) -> PasswordChange:
    """`{"newPassword", "currentPassword", "revokeOtherSessions"?, "revokeApiKeys"?}`"""
    body = parsed(request, _ChangePassword)
    return PasswordChange(
        current=body.current_password,
        new=body.new_password,
        ends_other_sessions=body.revoke_other_sessions is True,
        ends_keys=body.revoke_api_keys is True,
    )


def confirmation_token(request: Request) -> str:
    """`{"token"}`"""
    return parsed(request, _ConfirmEmailChange).token


def farewell_password(request: Request) -> str | None:
    """`{"password"?}`, to confirm the deletion of an account. Raises InvalidDeletionToken for any `token`."""
    body = parsed(request, _DeleteUser)
    if body.token is not None:
        raise InvalidDeletionToken
    return body.password
