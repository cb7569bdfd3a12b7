"""POST /api/auth/sign-in/email"""

from aws_lambda_powertools.event_handler import Request, Response

from larder import clock
from larder.accounts import credentials
from larder.accounts.user_json import user_json
from larder.web.account_bodies import SignInBody
from larder.web.app import auth_api, lambda_handler
from larder.web.cookies import session_cookies
from larder.web.responses import json_response
from larder.web.visit import VisitBy

app = auth_api()


@app.post("/api/auth/sign-in/email")
def sign_in(given: SignInBody, visit: VisitBy, request: Request) -> Response[str]:
    """POST /api/auth/sign-in/email: start a session. The client continues at `callbackURL`, if there is one."""
    user, token = credentials.sign_in(given, visit, now=clock.now())
    url = given.callback_url
    goes_on = {"url": url} if url else {}
    return json_response(
        {"redirect": bool(url), "token": token, **goes_on, "user": user_json(user)},
        headers={"Location": url} if url else {},
        cookies=session_cookies(request, token, remembered=given.remembered),
    )


handler = lambda_handler(app)
