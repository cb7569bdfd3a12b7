"""POST /api/auth/revoke-session"""

from larder.accounts.sessions import end_session
from larder.web.app import auth_api, lambda_handler
from larder.web.bodies.accounts import RevokedToken
from larder.web.callers.session import SignedInInPerson
from larder.web.replies.better_auth import StatusJson
from larder.web.responses import JsonResponse, json_response

app = auth_api()


@app.post("/api/auth/revoke-session")
def revoke_session(token: RevokedToken, caller: SignedInInPerson) -> JsonResponse[StatusJson]:
    """POST /api/auth/revoke-session: end one of the caller's sessions, by its token or by what the list shows."""
    end_session(caller.user.id, token)
    return json_response({"status": True})


handler = lambda_handler(app)
