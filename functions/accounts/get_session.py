"""GET /api/auth/get-session"""

from aws_lambda_powertools.event_handler import Request, Response

from larder import clock
from larder.accounts.sessions import extend_session
from larder.accounts.user_json import user_json
from larder.web.account_json import session_json
from larder.web.app import auth_api, lambda_handler
from larder.web.cookies import is_signed_by_the_old_secret, renewed_cookies
from larder.web.responses import NO_STORE, json_response
from larder.web.signed_in import MaybeSignedIn

app = auth_api()


@app.get("/api/auth/get-session")
def get_session(caller: MaybeSignedIn, request: Request) -> Response[str]:
    """GET /api/auth/get-session: who is signed in, or null. A session in use is extended once a day.

    Its cookie is set again then, and when the signing secret has been rotated since, so that people who come back
    stay signed in over the next rotation too.
    """
    if caller is None:
        return json_response(None, headers=NO_STORE)
    session = extend_session(caller.session, now=clock.now())
    is_due = session != caller.session or is_signed_by_the_old_secret(request)
    remembered = session.remembered
    return json_response(
        {"session": session_json(session, caller.token), "user": user_json(caller.user)},
        headers=NO_STORE,
        cookies=renewed_cookies(request, caller.token, remembered=remembered) if is_due else (),
    )


handler = lambda_handler(app)
