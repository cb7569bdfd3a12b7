"""POST /api/auth/turbo-login"""

from typing import TypedDict

from larder import clock
from larder.accounts import sign_in
from larder.turbo_login import service
from larder.web.app import better_auth_api, lambda_handler
from larder.web.principals.session import SignedInInPerson
from larder.web.responses import JsonResponse, json_response
from larder.web.turbo_login.bodies import GivenLogin

app = better_auth_api()


class GrantedLoginJson(TypedDict):
    url: str


@app.post("/api/auth/turbo-login")
def grant_login(login: GivenLogin, principal: SignedInInPerson) -> JsonResponse[GrantedLoginJson]:
    """POST /api/auth/turbo-login: create a key for a build client. The reply has the URL that passes it on.

    Takes the `password`, or a fresh session.
    """
    now = clock.now()
    sign_in.check_identity(principal.user, principal.session, login.password, now=now)
    token = service.create_token(principal.user, login.grant, now=now)
    return json_response({"url": login.client.callback(token, login.state)})


handler = lambda_handler(app)
