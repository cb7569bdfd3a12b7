from typing import Annotated

from larder import clock
from larder.accounts import sign_in
from larder.accounts.sign_in import SignUp
from larder.accounts.user_json import user_json
from larder.actor import PASSWORD, Actor
from larder.web.app import better_auth_api, lambda_handler
from larder.web.audit_log import audit
from larder.web.bodies.accounts import sign_up_body
from larder.web.cookies import session_cookies
from larder.web.log import logger
from larder.web.mail_context import RequestMailContext
from larder.web.powertools.resolver import Depends, Request
from larder.web.replies.accounts import NewSessionJson
from larder.web.responses import MAY_SET_COOKIES, JsonResponse, json_response

app = better_auth_api()


@app.post("/api/auth/sign-up/email")
def sign_up(
    given: Annotated[SignUp, Depends(sign_up_body)],
    mail_context: RequestMailContext,
    request: Request,
) -> Annotated[JsonResponse[NewSessionJson], MAY_SET_COOKIES]:
    """Add a user and sign them in, or send a link if addresses must be verified."""
    user, started = sign_in.sign_up(given, mail_context, now=clock.now())
    if started:
        # Without a session, the user may be made up, so that the reply does not reveal who has an account.
        actor = Actor(PASSWORD, user.id)
        audit("signed_up", actor, owner=user.id, subject=user.id)
        logger().append_keys(user_id=user.id, session_id=started.id)
        audit("signed_in", actor, owner=user.id, subject=started.id)
    token = started.token if started else None
    cookies = session_cookies(request, token, remembered=given.remembered) if token else []
    return json_response({"token": token, "user": user_json(user)}, cookies=cookies)


handler = lambda_handler(app)
