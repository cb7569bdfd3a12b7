from typing import Annotated

from larder.accounts.sessions import revoke_session
from larder.web.app import better_auth_api, lambda_handler
from larder.web.cookies import clearing_cookies
from larder.web.powertools.resolver import Request
from larder.web.principals.session import MaybeSignedInInPerson
from larder.web.replies.better_auth import SuccessJson
from larder.web.responses import MAY_SET_COOKIES, JsonResponse, json_response

app = better_auth_api()


@app.post("/api/auth/sign-out")
def sign_out(
    principal: MaybeSignedInInPerson, request: Request
) -> Annotated[JsonResponse[SuccessJson], MAY_SET_COOKIES]:
    """End the session, if there is one, and clear its cookie."""
    if principal is not None:
        revoke_session(principal.user.id, principal.token, actor=principal.actor)
    return json_response({"success": True}, cookies=clearing_cookies(request))


handler = lambda_handler(app)
