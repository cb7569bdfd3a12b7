"""GET /api/auth/get-session"""

from typing import Annotated

from larder import clock
from larder.accounts.sessions import extend_session
from larder.accounts.user_json import user_json
from larder.web.app import better_auth_api, lambda_handler
from larder.web.cookies import (
    ambiguous_cookies_cleared,
    is_signed_by_the_old_secret,
    renewed_cookies,
)
from larder.web.powertools.resolver import Request
from larder.web.principals.session import MaybeSignedIn
from larder.web.replies.accounts import CurrentSessionJson, session_json
from larder.web.responses import MAY_SET_COOKIES, JsonResponse, json_response

app = better_auth_api()


@app.get("/api/auth/get-session")
def get_session(
    principal: MaybeSignedIn, request: Request
) -> Annotated[JsonResponse[CurrentSessionJson | None], MAY_SET_COOKIES]:
    """GET /api/auth/get-session: get the session and its user, or null. A session in use is extended once a day.

    The cookie is set again then, and after a rotation of the signing secret, so that the session outlives the next
    rotation too. If the browser sends two session cookies, neither counts, and the reply deletes both.
    """
    if principal is None:
        return json_response(None, cookies=ambiguous_cookies_cleared(request))
    session = extend_session(principal.session, now=clock.now())
    is_due = session != principal.session or is_signed_by_the_old_secret(request)
    remembered = session.remembered
    return json_response(
        {"session": session_json(session, principal.token), "user": user_json(principal.user)},
        cookies=renewed_cookies(request, principal.token, remembered=remembered) if is_due else (),
    )


handler = lambda_handler(app)
