"""Replies of sign-ins with an identity provider, in the format of the Better Auth client."""

from typing import TYPE_CHECKING, TypedDict

from larder.accounts.provider_start import StartedSignIn
from larder.sso.refusals import SignInRefused
from larder.web.cookies import session_cookies
from larder.web.powertools.resolver import Request
from larder.web.responses import JsonResponse, PageRedirect, json_response, sent_on
from larder.web.state_cookies import cleared_cookie, started_cookies

if TYPE_CHECKING:
    # Only the callback verifies tokens, for which it has a layer of its own.
    from larder.accounts.provider_sign_in import FinishedSignIn

SIGN_IN_PAGE = "/sign-in"


class StartedSignInJson(TypedDict):
    """The client goes on to `url`, unless `redirect` is false."""

    url: str
    redirect: bool


def started_response(
    started: StartedSignIn, request: Request, *, redirects: bool
) -> JsonResponse[StartedSignInJson]:
    """The address at the provider, and the cookie with the state of the sign-in."""
    return json_response(
        {"url": started.url, "redirect": redirects},
        headers={"Location": started.url},
        cookies=started_cookies(request, started.pending),
    )


def finished_redirect(done: "FinishedSignIn", request: Request) -> PageRedirect:
    """On to the page of the sign-in, with the session, if one was started."""
    cookies = [cleared_cookie(request, done.pending.flow)]
    if done.token is not None:
        cookies += session_cookies(request, done.token, remembered=True)
    return sent_on(done.page, cookies=cookies)


def refused_redirect(refused: SignInRefused, request: Request) -> PageRedirect:
    """On to the page for errors. Without a valid state, the sign-in page: nothing else can be trusted."""
    if refused.pending is None:
        return sent_on(SIGN_IN_PAGE, error=refused.code)
    cookies = [cleared_cookie(request, refused.pending.flow)]
    return sent_on(refused.pending.pages.error_url, cookies=cookies, error=refused.code)
