from typing import Annotated, NotRequired, TypedDict

from larder import clock
from larder.accounts import sign_in as service
from larder.accounts.sign_in import SignIn
from larder.accounts.user_json import UserJson, user_json
from larder.actor import PASSWORD, Actor
from larder.web.app import better_auth_api, lambda_handler
from larder.web.audit_log import audit
from larder.web.bodies.accounts import sign_in_body
from larder.web.cookies import session_cookies
from larder.web.log import logger
from larder.web.mail_context import RequestMailContext
from larder.web.powertools.resolver import Depends, Request
from larder.web.responses import MAY_SET_COOKIES, JsonResponse, MayHave, json_response

app = better_auth_api()


class CallbackJson(TypedDict):
    url: NotRequired[str]


class SignedInJson(CallbackJson):
    redirect: bool
    token: str
    user: UserJson


@app.post("/api/auth/sign-in/email")
def sign_in(
    given: Annotated[SignIn, Depends(sign_in_body)],
    mail_context: RequestMailContext,
    request: Request,
) -> Annotated[JsonResponse[SignedInJson], MayHave("Location"), MAY_SET_COOKIES]:
    """Start a session. The client continues at `callbackURL`, if there is one."""
    user, started = service.sign_in(given, mail_context, now=clock.now())
    token = started.token
    logger().append_keys(user_id=user.id, session_id=started.id)
    audit("signed_in", Actor(PASSWORD, user.id), owner=user.id, subject=started.id)
    url = given.callback_url
    callback: CallbackJson = {"url": url} if url else {}
    return json_response(
        {"redirect": bool(url), "token": token, **callback, "user": user_json(user)},
        headers={"Location": url} if url else {},
        cookies=session_cookies(request, token, remembered=given.remembered),
    )


handler = lambda_handler(app)
