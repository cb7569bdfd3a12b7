from typing import Annotated, TypedDict

from larder import clock
from larder.accounts import sign_in
from larder.turbo_login import service
from larder.web.app import better_auth_api, lambda_handler
from larder.web.audit_log import audit
from larder.web.log import logger
from larder.web.powertools.resolver import Depends
from larder.web.principals.session import SignedInInPerson
from larder.web.responses import JsonResponse, json_response
from larder.web.turbo_login.bodies import SentLogin, sent_login

app = better_auth_api()


class GrantedLoginJson(TypedDict):
    url: str


@app.post("/api/auth/turbo-login")
def grant_login(
    login: Annotated[SentLogin, Depends(sent_login)], principal: SignedInInPerson
) -> JsonResponse[GrantedLoginJson]:
    """Create a key for a build client. The reply has the URL that passes it on.

    Takes the `password`, or a fresh session.
    """
    now = clock.now()
    sign_in.check_identity(principal.user, principal.session, login.password, now=now)
    token = service.create_token(principal.user, login.grant, actor=principal.actor, now=now)
    if token.key_id is not None:
        logger().append_keys(key_id=token.key_id)
        audit("key_created", principal.actor, owner=principal.user_id, subject=token.key_id)
    return json_response({"url": login.client.callback(token.text, login.state)})


handler = lambda_handler(app)
