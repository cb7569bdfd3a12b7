from typing import Annotated

from larder.accounts.user_json import user_json
from larder.web.app import better_auth_api, lambda_handler
from larder.web.cookies import ended_cookies_cleared
from larder.web.powertools.resolver import Request
from larder.web.principals.session import MaybeSignedIn, current_session
from larder.web.replies.accounts import CurrentSessionJson, session_json
from larder.web.responses import MAY_SET_COOKIES, JsonResponse, json_response

app = better_auth_api()


@app.get("/api/auth/get-session")
def get_session(
    principal: MaybeSignedIn, request: Request
) -> Annotated[JsonResponse[CurrentSessionJson | None], MAY_SET_COOKIES]:
    """Get the session and its user, or null. A session in use is extended once a day.

    The reply deletes the cookies of a session that has ended. If the browser sends two session cookies, neither counts,
    and the reply deletes both.
    """
    if principal is None:
        return json_response(None, cookies=ended_cookies_cleared(request))
    session, cookies = current_session(principal, request)
    return json_response(
        {"session": session_json(session, principal.token), "user": user_json(principal.user)},
        cookies=cookies,
    )


handler = lambda_handler(app)
