"""GET /api/auth/get-session"""

from typing import Annotated

from aws_lambda_powertools.event_handler import Request

from larder import clock
from larder.accounts.sessions import extend_session
from larder.accounts.user_json import user_json
from larder.web.app import auth_api, lambda_handler
from larder.web.callers.session import MaybeSignedIn
from larder.web.cookies import is_signed_by_the_old_secret, renewed_cookies
from larder.web.replies.accounts import CurrentSessionJson, session_json
from larder.web.responses import MAY_SET_COOKIES, PrivateResponse, private_response

app = auth_api()


@app.get("/api/auth/get-session")
def get_session(
    caller: MaybeSignedIn, request: Request
) -> Annotated[PrivateResponse[CurrentSessionJson | None], MAY_SET_COOKIES]:
    """GET /api/auth/get-session: who is signed in, or null. A session in use is extended once a day.

    The cookie is set again then, and after a rotation of the signing secret, so that the session outlives the next
    rotation too.
    """
    if caller is None:
        return private_response(None)
    session = extend_session(caller.session, now=clock.now())
    is_due = session != caller.session or is_signed_by_the_old_secret(request)
    remembered = session.remembered
    return private_response(
        {"session": session_json(session, caller.token), "user": user_json(caller.user)},
        cookies=renewed_cookies(request, caller.token, remembered=remembered) if is_due else (),
    )


handler = lambda_handler(app)
