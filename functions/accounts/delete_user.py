from typing import Annotated, Literal, TypedDict

from larder import clock
from larder.accounts import sign_in
from larder.api_keys.keys import delete_keys_of
from larder.teams.members import leave_teams
from larder.trust.makers import notify_of_user
from larder.web.app import better_auth_api, lambda_handler
from larder.web.bodies.credentials import farewell_password
from larder.web.cookies import clearing_cookies
from larder.web.mail_context import RequestMailContext
from larder.web.powertools.resolver import Depends, Request
from larder.web.principals.session import SignedInInPerson
from larder.web.responses import MAY_SET_COOKIES, JsonResponse, json_response

app = better_auth_api()


class DeletedUserJson(TypedDict):
    success: Literal[True]
    message: Literal["User deleted"]


@app.post("/api/auth/delete-user")
def delete_user(
    password: Annotated[str | None, Depends(farewell_password)],
    principal: SignedInInPerson,
    mail_context: RequestMailContext,
    request: Request,
) -> Annotated[JsonResponse[DeletedUserJson], MAY_SET_COOKIES]:
    """Delete the caller with their sessions, keys and memberships."""
    sign_in.delete_own_user(principal.user, principal.session, password, now=clock.now())
    notify_of_user(principal.user, mail_context)
    delete_keys_of(principal.user.id)
    leave_teams(principal.user.id)
    return json_response(
        {"success": True, "message": "User deleted"}, cookies=clearing_cookies(request)
    )


handler = lambda_handler(app)
