from typing import Annotated

from larder import clock
from larder.accounts import password_resets
from larder.web.app import better_auth_api, lambda_handler
from larder.web.audit_log import audit
from larder.web.bodies.credentials import NewPassword, new_password
from larder.web.mail_context import RequestMailContext
from larder.web.powertools.resolver import Depends
from larder.web.replies.better_auth import StatusJson
from larder.web.responses import JsonResponse, json_response

app = better_auth_api()


@app.post("/api/auth/reset-password")
def reset_password(
    new: Annotated[NewPassword, Depends(new_password)], mail_context: RequestMailContext
) -> JsonResponse[StatusJson]:
    """Set the password with the token of a link, which works once."""
    user = password_resets.reset_password(new.token, new.password, mail_context, now=clock.now())
    audit("password_reset", None, owner=user.id, subject=user.id)
    return json_response({"status": True})


handler = lambda_handler(app)
