from typing import Annotated

from larder import clock
from larder.accounts.models import ProfileChange
from larder.accounts.service import update_profile
from larder.web.app import better_auth_api, lambda_handler
from larder.web.bodies.accounts import profile_change
from larder.web.cookies import renewed_cookies
from larder.web.powertools.resolver import Depends, Request
from larder.web.principals.session import SignedInInPerson
from larder.web.replies.better_auth import StatusJson
from larder.web.responses import MAY_SET_COOKIES, JsonResponse, json_response

app = better_auth_api()


@app.post("/api/auth/update-user")
def update_user(
    change: Annotated[ProfileChange, Depends(profile_change)],
    principal: SignedInInPerson,
    request: Request,
) -> Annotated[JsonResponse[StatusJson], MAY_SET_COOKIES]:
    """Change the caller's name or picture."""
    update_profile(principal.user, change, now=clock.now())
    remembered = principal.session.remembered
    cookies = renewed_cookies(request, principal.token, remembered=remembered)
    return json_response({"status": True}, cookies=cookies)


handler = lambda_handler(app)
