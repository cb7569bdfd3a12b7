"""POST /api/auth/verify-password"""

from larder.accounts.service import check_password
from larder.web.app import auth_api, lambda_handler
from larder.web.bodies.accounts import GivenPassword
from larder.web.callers.session import SignedInInPerson
from larder.web.replies.better_auth import StatusJson
from larder.web.responses import JsonResponse, json_response

app = auth_api()


@app.post("/api/auth/verify-password")
def verify_password(password: GivenPassword, caller: SignedInInPerson) -> JsonResponse[StatusJson]:
    """POST /api/auth/verify-password: whether a password is the caller's."""
    check_password(caller.user, password)
    return json_response({"status": True})


handler = lambda_handler(app)
