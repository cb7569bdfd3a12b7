from typing import Annotated

from larder import clock
from larder.accounts.sessions import is_fresh
from larder.turbo_login import service
from larder.web.app import better_auth_api, lambda_handler
from larder.web.powertools.resolver import Depends
from larder.web.principals.session import MaybeSignedInInPerson
from larder.web.responses import JsonResponse, json_response
from larder.web.turbo_login.parameters import LoginRequest, login_request
from larder.web.turbo_login.replies import LoginJson, login_json, login_user_json

app = better_auth_api()


@app.get("/api/auth/turbo-login")
def describe_login(
    login: Annotated[LoginRequest, Depends(login_request)], principal: MaybeSignedInInPerson
) -> JsonResponse[LoginJson]:
    """Get the signed-in user, and the token that turbo would get."""
    if principal is None:
        return json_response(login_json(login, None, None))
    now = clock.now()
    user = login_user_json(principal.user, needs_password=not is_fresh(principal.session, now=now))
    offer = service.offer(principal.user.id, login.team, user_agent=login.user_agent, now=now)
    return json_response(login_json(login, user, offer))


handler = lambda_handler(app)
