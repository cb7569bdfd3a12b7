from typing import Annotated, Literal, TypedDict

from larder.accounts import password_resets
from larder.web.app import better_auth_api, lambda_handler
from larder.web.bodies.credentials import LinkWanted, reset_wanted
from larder.web.mail_context import RequestMailContext
from larder.web.powertools.resolver import Depends
from larder.web.responses import JsonResponse, json_response

app = better_auth_api()


class RequestedResetJson(TypedDict):
    status: Literal[True]
    message: Literal["If this email exists in our system, check your email for the reset link"]


@app.post("/api/auth/request-password-reset")
def request_password_reset(
    wanted: Annotated[LinkWanted, Depends(reset_wanted)], mail_context: RequestMailContext
) -> JsonResponse[RequestedResetJson]:
    """Send a reset link. The reply is the same for an unknown address."""
    password_resets.request_password_reset(wanted.email, wanted.callback_url, mail_context)
    return json_response(
        {
            "status": True,
            "message": "If this email exists in our system, check your email for the reset link",
        }
    )


handler = lambda_handler(app)
