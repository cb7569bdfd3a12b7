"""The session of a browser that opens a page."""

from collections.abc import Sequence

from larder import clock
from larder.accounts.models import Session
from larder.accounts.sessions import extend_session
from larder.web.cookies import is_signed_by_the_old_secret, renewed_cookies
from larder.web.powertools.resolver import Cookie, Request
from larder.web.principals.session import UserPrincipal


def current_session(principal: UserPrincipal, request: Request) -> tuple[Session, Sequence[Cookie]]:
    """The session, which a use extends once a day, and the cookies to set for it.

    They are set again then, and after a rotation of the signing secret, so that the session outlives the next rotation
    too.
    """
    session = extend_session(principal.session, principal.user, now=clock.now())
    is_due = session != principal.session or is_signed_by_the_old_secret(request)
    if not is_due:
        return session, ()
    return session, renewed_cookies(request, principal.token, remembered=session.remembered)
