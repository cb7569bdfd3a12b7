"""GET /api/auth/turbo-login"""

from larder import clock
from larder.api_keys import logins
from larder.web.app import auth_api, lambda_handler
from larder.web.login_json import LoginJson, login_json
from larder.web.login_parameters import AskedLogin
from larder.web.responses import PrivateResponse, private_response
from larder.web.signed_in import MaybeSignedInInPerson

app = auth_api()


@app.get("/api/auth/turbo-login")
def describe_login(asked: AskedLogin, caller: MaybeSignedInInPerson) -> PrivateResponse[LoginJson]:
    """GET /api/auth/turbo-login: who is signed in, and what a build client would get."""
    user, offer = None, None
    if caller is not None:
        user = caller.user
        offer = logins.offer(user.id, asked.team, user_agent=asked.user_agent, now=clock.now())
    return private_response(login_json(asked, user, offer))


handler = lambda_handler(app)
