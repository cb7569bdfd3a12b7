"""The bodies and links of endpoints that prove or change a credential, parsed and checked."""

from dataclasses import dataclass
from typing import Annotated

from aws_lambda_powertools.event_handler import Request
from aws_lambda_powertools.event_handler.depends import Depends
from pydantic import BaseModel, ConfigDict, Field

from larder.accounts.models import PasswordChange
from larder.errors import InvalidLinkToken, InvalidQuery
from larder.web.bodies.better_auth import parsed
from larder.web.origins import absolute

RESET_PAGE = "/reset-password"
"""Larder's own page, for links without a `callbackURL`."""


class _Body(BaseModel):
    # Unknown fields are ignored: newer clients send more of them.
    model_config = ConfigDict(strict=True)


class _SendVerification(_Body):
    email: str
    callback_url: str | None = Field(None, alias="callbackURL")


class _RequestReset(_Body):
    email: str
    redirect_to: str | None = Field(None, alias="redirectTo")


class _ResetPassword(_Body):
    new_password: str = Field(alias="newPassword")
    token: str | None = None


class _ChangePassword(_Body):
    new_password: str = Field(alias="newPassword")
    current_password: str = Field(alias="currentPassword")
    revoke_other_sessions: bool | None = Field(None, alias="revokeOtherSessions")


class _ChangeEmail(_Body):
    new_email: str = Field(alias="newEmail")
    callback_url: str | None = Field(None, alias="callbackURL")


class _DeleteUser(_Body):
    password: str | None = None


@dataclass(frozen=True, slots=True)
class LinkWanted:
    """The address that gets a link, and the URL that the link finally leads to, empty for none."""

    email: str
    callback_url: str


@dataclass(frozen=True, slots=True)
class FollowedLink:
    """The token of a link, and the URL to redirect to afterwards, empty for none."""

    token: str
    callback_url: str


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


def new_email(request: Request) -> LinkWanted:
    """`{"newEmail", "callbackURL"?}`"""
    body = parsed(request, _ChangeEmail)
    return LinkWanted(body.new_email, body.callback_url or "")


def new_password(request: Request) -> NewPassword:
    """`{"newPassword", "token"?}`. The token can be in the query instead. Raises InvalidLinkToken without one."""
    body = parsed(request, _ResetPassword)
    token = body.token or (request.query_parameters or {}).get("token")
    if not token:
        raise InvalidLinkToken
    return NewPassword(token, body.new_password)


def password_change(request: Request) -> PasswordChange:
    """`{"newPassword", "currentPassword", "revokeOtherSessions"?}`"""
    body = parsed(request, _ChangePassword)
    return PasswordChange(
        current=body.current_password,
        new=body.new_password,
        ends_other_sessions=body.revoke_other_sessions is True,
    )


def farewell_password(request: Request) -> str | None:
    """`{"password"?}`, to confirm the deletion of an account."""
    return parsed(request, _DeleteUser).password


def verification_link(request: Request) -> FollowedLink:
    """`?token=&callbackURL=`. Raises InvalidQuery without a token."""
    query = request.query_parameters or {}
    if "token" not in query:
        raise InvalidQuery("token", "is required")
    return FollowedLink(query["token"], query.get("callbackURL", ""))


def reset_page(request: Request) -> str:
    """`?callbackURL=`: the page that asks for the new password, by default Larder's own."""
    callback_url = (request.query_parameters or {}).get("callbackURL")
    return absolute(callback_url or RESET_PAGE, request)


VerificationWanted = Annotated[LinkWanted, Depends(verification_wanted)]
ResetWanted = Annotated[LinkWanted, Depends(reset_wanted)]
NewEmail = Annotated[LinkWanted, Depends(new_email)]
NewPasswordBody = Annotated[NewPassword, Depends(new_password)]
PasswordChangeBody = Annotated[PasswordChange, Depends(password_change)]
FarewellPassword = Annotated[str | None, Depends(farewell_password)]
VerificationLink = Annotated[FollowedLink, Depends(verification_link)]
ResetPage = Annotated[str, Depends(reset_page)]
