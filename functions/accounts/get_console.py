from typing import Annotated

from larder.teams import members
from larder.teams.models import MAX_LISTED
from larder.web.app import better_auth_api, lambda_handler
from larder.web.cookies import ambiguous_cookies_cleared
from larder.web.powertools.resolver import Request
from larder.web.principals.session import MaybeSignedInInPerson, current_session
from larder.web.replies.console import ConsoleJson, console_json
from larder.web.responses import MAY_SET_COOKIES, JsonResponse, json_response

app = better_auth_api()


@app.get("/api/auth/console")
def get_console(
    principal: MaybeSignedInInPerson, request: Request
) -> Annotated[JsonResponse[ConsoleJson | None], MAY_SET_COOKIES]:
    """Get the session, its user and their teams, or null. The console starts with it.

    The session is extended as by `/get-session`. A key does not count.
    """
    if principal is None:
        return json_response(None, cookies=ambiguous_cookies_cleared(request))
    session, cookies = current_session(principal, request)
    memberships, following = members.list_memberships(
        principal.user_id, bound_to=None, after=None, limit=MAX_LISTED
    )
    return json_response(console_json(principal, session, memberships, following), cookies=cookies)


handler = lambda_handler(app)
