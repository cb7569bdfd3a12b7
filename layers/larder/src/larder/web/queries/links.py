"""Query parameters of the links in emails."""

from dataclasses import dataclass

from larder import clock
from larder.accounts.link_tokens import callback_url_of
from larder.web.declared import text
from larder.web.errors import InvalidCallbackUrl, InvalidQuery
from larder.web.origins import absolute, is_trusted_url
from larder.web.powertools.resolver import Request

RESET_PAGE = "/reset-password"
VERIFIED_PAGE = "/verified"
"""Larder's own pages, for links without a `callbackURL`."""

TOKEN = text("token", "The token of the link.", required=True)
ACCEPT = text("accept", "A browser's: it gets a page.", place="header")
CONTINUE_AT = text("callbackURL", "The page to redirect to.")
NEW_PASSWORD_AT = text("callbackURL", "The page on which the user enters the new password.")
CALLBACK = text("callback", "The same as a signed token, in the links of emails.")


@dataclass(frozen=True, slots=True)
class FollowedLink:
    """The token of a link, and the URL to redirect to afterwards, empty for none."""

    token: str
    callback_url: str


def verification_link(request: Request) -> FollowedLink:
    """`?token=&callbackURL=` or `?token=&callback=`. Raises InvalidQuery without a token.

    A browser gets a page also for a link that a mail program has cut.
    """
    token = TOKEN(request)
    if token is None:
        raise InvalidQuery("token", "is required")
    url = _callback_url(CONTINUE_AT(request), CALLBACK(request), request)
    is_browser = "text/html" in (ACCEPT(request) or "").lower()
    return FollowedLink(token, url or (VERIFIED_PAGE if is_browser else ""))


@dataclass(frozen=True, slots=True)
class PasswordPage:
    """The page that asks for the new password."""

    url: str
    is_ours: bool


def reset_page(request: Request) -> PasswordPage:
    """`?callbackURL=` or `?callback=`: the page that asks for the new password, by default Larder's own."""
    url = _callback_url(NEW_PASSWORD_AT(request), CALLBACK(request), request)
    return PasswordPage(absolute(url or RESET_PAGE, request), is_ours=not url)


def _callback_url(given: str | None, token: str | None, request: Request) -> str:
    """The URL that a client gives, or that of the token in a link that Larder sent. Raises InvalidCallbackUrl."""
    if given or not token:
        return given or ""  # checked by the guards
    url = callback_url_of(token, now=clock.now())
    # The trusted origins may have changed since the email was sent.
    if url and not is_trusted_url(url, request):
        raise InvalidCallbackUrl
    return url
