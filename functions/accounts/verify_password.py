from typing import Annotated

from larder import clock
from larder.accounts.service import check_password
from larder.web.app import better_auth_api, lambda_handler
from larder.web.bodies.accounts import given_password
from larder.web.powertools.resolver import Depends
from larder.web.principals.session import SignedInInPerson
from larder.web.replies.better_auth import StatusJson
from larder.web.responses import JsonResponse, json_response

app = better_auth_api()


@app.post("/api/auth/verify-password")
def verify_password(
    password: Annotated[str, Depends(given_password)], principal: SignedInInPerson
) -> JsonResponse[StatusJson]:
    """Check the caller's password."""
    check_password(principal.user, password, now=clock.now())
    return json_response({"status": True})


handler = lambda_handler(app)
