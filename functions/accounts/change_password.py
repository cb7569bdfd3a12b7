"""POST /api/auth/change-password"""

from typing import Annotated

from aws_lambda_powertools.event_handler import Request

from larder import clock
from larder.accounts import sign_in
from larder.accounts.user_json import user_json
from larder.web.app import auth_api, lambda_handler
from larder.web.bodies.credentials import PasswordChangeBody
from larder.web.callers.session import SignedInInPerson
from larder.web.cookies import session_cookies
from larder.web.mail_context import RequestMailContext
from larder.web.replies.accounts import NewSessionJson
from larder.web.responses import MAY_SET_COOKIES, JsonResponse, json_response

app = auth_api()


@app.post("/api/auth/change-password")
def change_password(
    change: PasswordChangeBody,
    caller: SignedInInPerson,
    mail_context: RequestMailContext,
    request: Request,
) -> Annotated[JsonResponse[NewSessionJson], MAY_SET_COOKIES]:
    """POST /api/auth/change-password: set another password. `revokeOtherSessions` leaves one new session."""
    user, token = sign_in.change_password(caller.session, change, mail_context, now=clock.now())
    kept = caller.session.remembered
    cookies = session_cookies(request, token, remembered=kept) if token else []
    return json_response({"token": token, "user": user_json(user)}, cookies=cookies)


handler = lambda_handler(app)
