from typing import Annotated

from larder.accounts import email_links
from larder.web.app import better_auth_api, lambda_handler
from larder.web.bodies.credentials import LinkWanted, verification_wanted
from larder.web.mail_context import RequestMailContext
from larder.web.powertools.resolver import Depends
from larder.web.principals.session import MaybeSignedInInPerson
from larder.web.replies.better_auth import StatusJson
from larder.web.responses import JsonResponse, json_response

app = better_auth_api()


@app.post("/api/auth/send-verification-email")
def request_verification(
    wanted: Annotated[LinkWanted, Depends(verification_wanted)],
    principal: MaybeSignedInInPerson,
    mail_context: RequestMailContext,
) -> JsonResponse[StatusJson]:
    """Send a verification link, if the address is known and needs one."""
    by = principal.user if principal else None
    email_links.request_verification(wanted.email, wanted.callback_url, mail_context, by=by)
    return json_response({"status": True})


handler = lambda_handler(app)
