"""POST /api/auth/sign-out"""

from typing import Annotated

from aws_lambda_powertools.event_handler import Request

from larder.accounts.sessions import end_session
from larder.web.app import auth_api, lambda_handler
from larder.web.callers.session import MaybeSignedInInPerson
from larder.web.cookies import clearing_cookies
from larder.web.replies.better_auth import SuccessJson
from larder.web.responses import MAY_SET_COOKIES, JsonResponse, json_response

app = auth_api()


@app.post("/api/auth/sign-out")
def sign_out(
    caller: MaybeSignedInInPerson, request: Request
) -> Annotated[JsonResponse[SuccessJson], MAY_SET_COOKIES]:
    """POST /api/auth/sign-out: end the session, if there is one, and clear its cookie."""
    if caller is not None:
        end_session(caller.user.id, caller.token)
    return json_response({"success": True}, cookies=clearing_cookies(request))


handler = lambda_handler(app)
