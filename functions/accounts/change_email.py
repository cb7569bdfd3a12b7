"""POST /api/auth/change-email"""

from larder.accounts import links
from larder.web.app import auth_api, lambda_handler
from larder.web.bodies.credentials import NewEmail
from larder.web.callers.session import SignedInInPerson
from larder.web.mail_context import RequestMailContext
from larder.web.replies.better_auth import StatusJson
from larder.web.responses import JsonResponse, json_response

app = auth_api()


@app.post("/api/auth/change-email")
def change_email(
    wanted: NewEmail, caller: SignedInInPerson, mail_context: RequestMailContext
) -> JsonResponse[StatusJson]:
    """POST /api/auth/change-email: send a link to the new address, which counts once the link is opened."""
    links.request_new_email(caller.user, wanted.email, wanted.callback_url, mail_context)
    return json_response({"status": True})


handler = lambda_handler(app)
