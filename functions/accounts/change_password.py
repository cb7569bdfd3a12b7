from typing import Annotated

from larder import clock
from larder.accounts import sign_in
from larder.accounts.models import PasswordChange
from larder.accounts.user_json import user_json
from larder.web.app import better_auth_api, lambda_handler
from larder.web.audit_log import audit
from larder.web.bodies.credentials import password_change
from larder.web.cookies import session_cookies
from larder.web.mail_context import RequestMailContext
from larder.web.powertools.resolver import Depends, Request
from larder.web.principals.session import SignedInInPerson
from larder.web.replies.accounts import NewSessionJson
from larder.web.responses import MAY_SET_COOKIES, JsonResponse, json_response

app = better_auth_api()


@app.post("/api/auth/change-password")
def change_password(
    change: Annotated[PasswordChange, Depends(password_change)],
    principal: SignedInInPerson,
    mail_context: RequestMailContext,
    request: Request,
) -> Annotated[JsonResponse[NewSessionJson], MAY_SET_COOKIES]:
    """Change the password. `revokeOtherSessions` ends all sessions and starts one.

    `revokeApiKeys` also ends all API keys of the user.
    """
    user, started = sign_in.change_own_password(
        principal.session, change, mail_context, now=clock.now()
    )
    token = started.token if started else None
    audit("password_changed", principal.actor, owner=user.id, subject=user.id)
    kept = principal.session.remembered
    cookies = session_cookies(request, token, remembered=kept) if token else []
    return json_response({"token": token, "user": user_json(user)}, cookies=cookies)


handler = lambda_handler(app)
