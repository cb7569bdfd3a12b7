"""POST /api/auth/turbo-login"""

from typing import TypedDict

from larder import clock
from larder.turbo_login import service
from larder.web.app import auth_api, lambda_handler
from larder.web.callers.session import SignedInInPerson
from larder.web.responses import PrivateResponse, private_response
from larder.web.turbo_login.bodies import GivenLogin

app = auth_api()


class GrantedLoginJson(TypedDict):
    url: str


@app.post("/api/auth/turbo-login")
def grant_login(login: GivenLogin, caller: SignedInInPerson) -> PrivateResponse[GrantedLoginJson]:
    """POST /api/auth/turbo-login: create a key for a build client. The reply says where the browser takes it."""
    token = service.give(caller.user, login.grant, now=clock.now())
    return private_response({"url": login.client.callback(token, login.state)})


handler = lambda_handler(app)
