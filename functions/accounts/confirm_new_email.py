from typing import Annotated

from larder import clock
from larder.accounts import email_links
from larder.web.app import better_auth_api, lambda_handler
from larder.web.audit_log import audit
from larder.web.bodies.credentials import confirmation_token
from larder.web.mail_context import RequestMailContext
from larder.web.powertools.resolver import Depends
from larder.web.replies.better_auth import StatusJson
from larder.web.responses import JsonResponse, json_response

app = better_auth_api()


@app.post("/api/auth/confirm-email-change")
def confirm_new_email(
    token: Annotated[str, Depends(confirmation_token)], mail_context: RequestMailContext
) -> JsonResponse[StatusJson]:
    """Confirm a change with the old address's token. Sends the new one a link."""
    user = email_links.confirm_new_email(token, mail_context, now=clock.now())
    audit("email_change_confirmed", None, owner=user.id, subject=user.id)
    return json_response({"status": True})


handler = lambda_handler(app)
