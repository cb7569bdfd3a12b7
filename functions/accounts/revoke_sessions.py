"""POST /api/auth/revoke-sessions"""

from larder.accounts.sessions import end_sessions
from larder.web.app import auth_api, lambda_handler
from larder.web.callers.session import SignedInInPerson
from larder.web.replies.better_auth import StatusJson
from larder.web.responses import JsonResponse, json_response

app = auth_api()


@app.post("/api/auth/revoke-sessions")
def revoke_sessions(caller: SignedInInPerson) -> JsonResponse[StatusJson]:
    """POST /api/auth/revoke-sessions: end all of the caller's sessions, including this one."""
    end_sessions(caller.user.id)
    return json_response({"status": True})


handler = lambda_handler(app)
