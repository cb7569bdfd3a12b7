"""The JSON bodies of the account endpoints, parsed and checked: the types that handlers name in their signatures.

Unknown fields are ignored: newer clients send more of them, and users cannot set their own `id`, `role` or
`emailVerified`.
"""

from typing import Literal

from pydantic import Field

from larder.accounts.linking import UnlinkRequest
from larder.accounts.models import ProfileChange
from larder.accounts.provider_start import ProviderStart
from larder.accounts.service import parse_image
from larder.accounts.setup import MAX_SETUP_CODE
from larder.accounts.sign_in import SignIn, SignUp
from larder.addresses import MAX_ADDRESS_LENGTH
from larder.names import parse_name
from larder.sso.authorization import RESERVED
from larder.sso.state import Pages
from larder.web.bodies.better_auth import auth_body, parsed
from larder.web.bodies.model import BodyModel
from larder.web.errors import (
    EmailCannotBeUpdated,
    IdTokenNotSupported,
    InvalidBody,
    NoFieldsToUpdate,
)
from larder.web.powertools.resolver import Request


class _SignUp(BodyModel):
    name: str
    email: str
    password: str
    image: str | None = None
    callback_url: str | None = Field(default=None, alias="callbackURL")
    remember_me: bool | None = Field(default=None, alias="rememberMe")
    setup_code: str | None = Field(default=None, alias="setupCode", max_length=MAX_SETUP_CODE)


class _SignIn(BodyModel):
    email: str
    password: str
    callback_url: str | None = Field(default=None, alias="callbackURL")
    remember_me: bool | None = Field(default=None, alias="rememberMe")


class _Parameters(BodyModel):
    """Of the parameters that a client may add to the provider's address. All others are the operator's."""

    prompt: Literal["login", "select_account"] | None = None


class _ProviderSignIn(BodyModel):
    callback_url: str | None = Field(default=None, alias="callbackURL")
    error_callback_url: str | None = Field(default=None, alias="errorCallbackURL")
    new_user_callback_url: str | None = Field(default=None, alias="newUserCallbackURL")
    disable_redirect: bool | None = Field(default=None, alias="disableRedirect")
    login_hint: str | None = Field(default=None, alias="loginHint", max_length=MAX_ADDRESS_LENGTH)
    additional_params: _Parameters | None = Field(default=None, alias="additionalParams")


class _Social(_ProviderSignIn):
    provider: str
    id_token: object = Field(default=None, alias="idToken")


class _Sso(_ProviderSignIn):
    email: str | None = None
    domain: str | None = None
    provider_id: str | None = Field(default=None, alias="providerId")
    organization_slug: str | None = Field(default=None, alias="organizationSlug")


class _Unlink(BodyModel):
    provider_id: str | None = Field(default=None, alias="providerId")
    account_id: str | None = Field(default=None, alias="accountId")


class _RevokeSession(BodyModel):
    token: str


class _VerifyPassword(BodyModel):
    password: str


class _UpdateUser(BodyModel):
    name: str = ""
    image: str | None = None
    email: object = None


def sign_up_body(request: Request) -> SignUp:
    """`{"name", "email", "password", "image"?, "callbackURL"?, "rememberMe"?, "setupCode"?}`"""
    body = parsed(request, _SignUp)
    return SignUp(
        name=parse_name(body.name),
        email=body.email,
        password=body.password,
        image=parse_image(body.image or None),
        callback_url=body.callback_url or "",
        remembered=body.remember_me is not False,
        setup_code=body.setup_code,
    )


def sign_in_body(request: Request) -> SignIn:
    """`{"email", "password", "callbackURL"?, "rememberMe"?}`"""
    body = parsed(request, _SignIn)
    return SignIn(
        email=body.email,
        password=body.password,
        callback_url=body.callback_url or "",
        remembered=body.remember_me is not False,
    )


def social_body(request: Request) -> ProviderStart:
    """`{"provider", "callbackURL"?, "errorCallbackURL"?, "newUserCallbackURL"?, "disableRedirect"?, "loginHint"?,
    "additionalParams"?}`. Also raises IdTokenNotSupported.
    """
    body = parsed(request, _Social)
    if body.id_token:
        raise IdTokenNotSupported
    return _provider_start(request, body, provider_id=body.provider)


def sso_body(request: Request) -> ProviderStart:
    """The same with one of `email`, `domain`, `providerId` and `organizationSlug` in place of `provider`."""
    body = parsed(request, _Sso)
    named = {
        "provider_id": body.provider_id,
        "email": body.email,
        "domain": body.domain,
        "team": body.organization_slug,
    }
    given = {name: value for name, value in named.items() if value}
    if not given:
        raise InvalidBody("email", "is required, or one of domain, providerId and organizationSlug")
    return _provider_start(request, body, **given)


def account_to_unlink(request: Request) -> UnlinkRequest:
    """`{"accountId"}`, or `{"providerId", "accountId"?}`"""
    body = parsed(request, _Unlink)
    if not (body.provider_id or body.account_id):
        raise InvalidBody("accountId", "is required")
    return UnlinkRequest(account_id=body.account_id or None, provider_id=body.provider_id or None)


def _provider_start(request: Request, body: _ProviderSignIn, **named: str) -> ProviderStart:
    """Raises InvalidBody for a parameter that only Larder sets."""
    sent = auth_body(request)
    given = sent.get("additionalParams") if isinstance(sent, dict) else None
    if reserved := sorted(RESERVED.intersection(given or ())):
        raise InvalidBody(f"additionalParams.{reserved[0]}", "is set by the server")
    return ProviderStart(
        **named,
        pages=Pages(
            callback_url=body.callback_url or "/",
            error_url=body.error_callback_url or "/sign-in",
            new_user_url=body.new_user_callback_url or "",
        ),
        login_hint=body.login_hint or None,
        prompt=body.additional_params.prompt if body.additional_params else None,
        redirects=not body.disable_redirect,
    )


def session_to_revoke(request: Request) -> str:
    """`{"token"}`"""
    return parsed(request, _RevokeSession).token


def given_password(request: Request) -> str:
    """`{"password"}`"""
    return parsed(request, _VerifyPassword).password


def profile_change(request: Request) -> ProfileChange:
    """`{"name"?, "image"?}`. An image of null removes it. Also raises EmailCannotBeUpdated, NoFieldsToUpdate."""
    body = parsed(request, _UpdateUser)
    given = body.model_fields_set
    if "email" in given:
        raise EmailCannotBeUpdated
    if not given:
        raise NoFieldsToUpdate
    return ProfileChange(
        name=parse_name(body.name) if "name" in given else None,
        image=parse_image(body.image or None),
        removes_image="image" in given and not body.image,
    )
