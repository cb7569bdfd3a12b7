from larder.accounts import sessions
from larder.web.app import better_auth_api, lambda_handler
from larder.web.principals.session import SignedInInPerson
from larder.web.replies.better_auth import StatusJson
from larder.web.responses import JsonResponse, json_response

app = better_auth_api()


@app.post("/api/auth/revoke-sessions")
def revoke_sessions(principal: SignedInInPerson) -> JsonResponse[StatusJson]:
    """End all of the caller's sessions, including this one."""
    sessions.revoke_sessions(principal.user.id, actor=principal.actor)
    return json_response({"status": True})


handler = lambda_handler(app)
