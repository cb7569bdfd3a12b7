"""POST /api/auth/send-verification-email"""

from larder.accounts import links
from larder.web.app import auth_api, lambda_handler
from larder.web.bodies.credentials import VerificationWanted
from larder.web.callers.session import MaybeSignedInInPerson
from larder.web.mail_context import RequestMailContext
from larder.web.replies.better_auth import StatusJson
from larder.web.responses import JsonResponse, json_response

app = auth_api()


@app.post("/api/auth/send-verification-email")
def request_verification(
    wanted: VerificationWanted, caller: MaybeSignedInInPerson, mail_context: RequestMailContext
) -> JsonResponse[StatusJson]:
    """POST /api/auth/send-verification-email: send a verification link, if the address is known and needs one."""
    by = caller.user if caller else None
    links.request_verification(wanted.email, wanted.callback_url, mail_context, by=by)
    return json_response({"status": True})


handler = lambda_handler(app)
