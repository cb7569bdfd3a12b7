"""GET /api/auth/list-sessions"""

from larder import clock
from larder.accounts import sessions
from larder.web.app import auth_api, lambda_handler
from larder.web.callers.session import SignedInLately
from larder.web.replies.accounts import SessionJson, sessions_json
from larder.web.responses import JsonResponse, json_response

app = auth_api()


@app.get("/api/auth/list-sessions")
def list_sessions(caller: SignedInLately) -> JsonResponse[list[SessionJson]]:
    """GET /api/auth/list-sessions: the caller's sessions, newest first."""
    found = sessions.list_sessions(caller.user, now=clock.now())
    return json_response(sessions_json(found, caller))


handler = lambda_handler(app)
