"""GET /api/auth/turbo-login"""

from larder import clock
from larder.turbo_login import service
from larder.web.app import auth_api, lambda_handler
from larder.web.callers.session import MaybeSignedInInPerson
from larder.web.responses import PrivateResponse, private_response
from larder.web.turbo_login.parameters import AskedLogin
from larder.web.turbo_login.replies import LoginJson, login_json

app = auth_api()


@app.get("/api/auth/turbo-login")
def describe_login(asked: AskedLogin, caller: MaybeSignedInInPerson) -> PrivateResponse[LoginJson]:
    """GET /api/auth/turbo-login: who is signed in, and what a build client would get."""
    user, offer = None, None
    if caller is not None:
        user = caller.user
        offer = service.offer(user.id, asked.team, user_agent=asked.user_agent, now=clock.now())
    return private_response(login_json(asked, user, offer))


handler = lambda_handler(app)
