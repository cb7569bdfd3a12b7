"""POST /api/auth/request-password-reset"""

from aws_lambda_powertools.event_handler import Response

from larder.accounts import links
from larder.web.app import auth_api, lambda_handler
from larder.web.credential_bodies import ResetWanted
from larder.web.responses import json_response
from larder.web.visit import VisitBy

app = auth_api()

_ANSWER = "If this email exists in our system, check your email for the reset link"


@app.post("/api/auth/request-password-reset")
def request_password_reset(wanted: ResetWanted, visit: VisitBy) -> Response[str]:
    """POST /api/auth/request-password-reset: send a reset link. The reply is the same for an unknown address."""
    links.request_password_reset(wanted.email, wanted.callback_url, visit)
    return json_response({"status": True, "message": _ANSWER})


handler = lambda_handler(app)
