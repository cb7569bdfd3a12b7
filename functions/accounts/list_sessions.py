from larder import clock
from larder.accounts import sessions
from larder.web.app import better_auth_api, lambda_handler
from larder.web.principals.session import SignedInLately
from larder.web.replies.accounts import SessionJson, sessions_json
from larder.web.responses import JsonResponse, json_response

app = better_auth_api()


@app.get("/api/auth/list-sessions")
def list_sessions(principal: SignedInLately) -> JsonResponse[list[SessionJson]]:
    """List the caller's sessions, newest first."""
    found = sessions.list_sessions(principal.user, now=clock.now())
    return json_response(sessions_json(found, principal))


handler = lambda_handler(app)
