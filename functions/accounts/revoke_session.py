from typing import Annotated

from larder.accounts import sessions
from larder.web.app import better_auth_api, lambda_handler
from larder.web.bodies.accounts import session_to_revoke
from larder.web.powertools.resolver import Depends
from larder.web.principals.session import SignedInInPerson
from larder.web.replies.better_auth import StatusJson
from larder.web.responses import JsonResponse, json_response

app = better_auth_api()


@app.post("/api/auth/revoke-session")
def revoke_session(
    token: Annotated[str, Depends(session_to_revoke)], principal: SignedInInPerson
) -> JsonResponse[StatusJson]:
    """End one of the caller's sessions, by its token or by its `token` in the list."""
    sessions.revoke_session(principal.user.id, token, actor=principal.actor)
    return json_response({"status": True})


handler = lambda_handler(app)
