"""The JSON bodies of the account endpoints, parsed and checked: the types that handlers name in their signatures.

Unknown fields are ignored: newer clients send more of them, and users cannot set their own `id`, `role` or
`emailVerified`.
"""

from pydantic import Field

from larder.accounts.models import ProfileChange
from larder.accounts.service import parse_image
from larder.accounts.sign_in import SignIn, SignUp
from larder.names import parse_name
from larder.web.bodies.better_auth import parsed
from larder.web.bodies.model import BodyModel
from larder.web.errors import EmailCannotBeUpdated, NoFieldsToUpdate
from larder.web.powertools.resolver import Request


class _SignUp(BodyModel):
    name: str
    email: str
    password: str
    image: str | None = None
    callback_url: str | None = Field(default=None, alias="callbackURL")
    remember_me: bool | None = Field(default=None, alias="rememberMe")


class _SignIn(BodyModel):
    email: str
    password: str
    callback_url: str | None = Field(default=None, alias="callbackURL")
    remember_me: bool | None = Field(default=None, alias="rememberMe")


class _RevokeSession(BodyModel):
    token: str


class _VerifyPassword(BodyModel):
    password: str


class _UpdateUser(BodyModel):
    name: str = ""
    image: str | None = None
    email: object = None


def sign_up_body(request: Request) -> SignUp:
    """`{"name", "email", "password", "image"?, "callbackURL"?, "rememberMe"?}`"""
    body = parsed(request, _SignUp)
    return SignUp(
        name=parse_name(body.name),
        email=body.email,
        password=body.password,
        image=parse_image(body.image or None),
        callback_url=body.callback_url or "",
        remembered=body.remember_me is not False,
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
