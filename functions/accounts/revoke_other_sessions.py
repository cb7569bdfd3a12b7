from larder.accounts import sessions
from larder.web.app import better_auth_api, lambda_handler
from larder.web.principals.session import SignedInInPerson
from larder.web.replies.better_auth import StatusJson
from larder.web.responses import JsonResponse, json_response

app = better_auth_api()


@app.post("/api/auth/revoke-other-sessions")
def revoke_other_sessions(principal: SignedInInPerson) -> JsonResponse[StatusJson]:
    """End all of the caller's sessions except this one."""
    sessions.revoke_sessions(principal.user.id, kept=principal.session, actor=principal.actor)
    return json_response({"status": True})


handler = lambda_handler(app)
