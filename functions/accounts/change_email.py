from typing import Annotated

from larder import clock
from larder.accounts import email_links, sign_in
from larder.web.app import better_auth_api, lambda_handler
from larder.web.bodies.credentials import WantedEmail, new_email
from larder.web.mail_context import RequestMailContext
from larder.web.powertools.resolver import Depends
from larder.web.principals.session import SignedInInPerson
from larder.web.replies.better_auth import StatusJson
from larder.web.responses import JsonResponse, json_response

app = better_auth_api()


@app.post("/api/auth/change-email")
def change_email(
    wanted: Annotated[WantedEmail, Depends(new_email)],
    principal: SignedInInPerson,
    mail_context: RequestMailContext,
) -> JsonResponse[StatusJson]:
    """Send a link to the new address. Opening it changes the address.

    Takes the `password`, or a fresh session. A verified old address gets a link first.
    """
    now = clock.now()
    sign_in.check_identity(principal.user, principal.session, wanted.password, now=now)
    email_links.request_new_email(
        principal.user, wanted.email, wanted.callback_url, mail_context, now=now
    )
    return json_response({"status": True})


handler = lambda_handler(app)
