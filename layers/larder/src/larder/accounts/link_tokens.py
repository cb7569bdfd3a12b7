"""The signed tokens of links in email. They are not stored, and using one again does no harm."""

from datetime import datetime

from larder.accounts.models import User
from larder.errors import InvalidVerificationToken, VerificationTokenExpired
from larder.settings import settings
from larder.signing import ExpiredToken, InvalidToken, decode_token, encode_token

_CALLBACK_LIFETIME_S = 30 * 86_400
CONFIRMS = "confirms"
"""The claim with the new address, in a token that confirms the change to it."""


def credentials_of(user: User) -> str:
    """Changes when the user changes the password or ends all sessions."""
    return f"{user.password_version}.{user.session_generation}"


def issue_verification_token(user: User, *, new_email: str | None = None, now: datetime) -> str:
    """A token that verifies the user's address or, with `new_email`, changes the address to that."""
    claims = {"email": user.email, "userId": user.id}
    if new_email is not None:
        claims |= {"updateTo": new_email, "credentials": credentials_of(user)}
    lifetime_s = settings().verification_token_expires_in_seconds
    return encode_token(claims, now=now, lifetime_s=lifetime_s)


def issue_confirmation_token(
    user: User, *, new_email: str, callback_url: str, now: datetime
) -> str:
    """A token for a link to the user's address, which confirms the change to `new_email`."""
    claims = {
        "email": user.email,
        "userId": user.id,
        CONFIRMS: new_email,
        "credentials": credentials_of(user),
        "callbackURL": callback_url,
    }
    lifetime_s = settings().verification_token_expires_in_seconds
    return encode_token(claims, now=now, lifetime_s=lifetime_s)


def issue_callback_token(url: str, *, now: datetime) -> str:
    """A token for a link in an email, which has the URL to redirect to.

    It outlives the link, because an expired link also redirects there.
    """
    return encode_token({"callbackURL": url}, now=now, lifetime_s=_CALLBACK_LIFETIME_S)


def callback_url_of(token: str, *, now: datetime) -> str:
    """The URL of a callback token. Empty if the token is invalid or has expired."""
    try:
        url: str = decode_token(token, now=now).get("callbackURL", "")
    except (ExpiredToken, InvalidToken):
        return ""
    return url


def claims_of(token: str, *, now: datetime) -> dict[str, str]:
    """The claims about an address. Raises InvalidVerificationToken, VerificationTokenExpired."""
    try:
        claims = decode_token(token, now=now)
    except ExpiredToken:
        raise VerificationTokenExpired from None
    except InvalidToken:
        raise InvalidVerificationToken from None
    if "email" not in claims or "userId" not in claims:
        raise InvalidVerificationToken  # signed for another purpose
    return claims
