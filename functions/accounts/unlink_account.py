from typing import Annotated

from larder import clock
from larder.accounts import linking
from larder.accounts.linking import UnlinkRequest
from larder.api_keys.keys import delete_keys_of_member
from larder.web.app import better_auth_api, lambda_handler
from larder.web.bodies.accounts import account_to_unlink
from larder.web.powertools.resolver import Depends
from larder.web.principals.session import SignedInLately
from larder.web.replies.better_auth import StatusJson
from larder.web.responses import JsonResponse, json_response

app = better_auth_api()


@app.post("/api/auth/unlink-account")
def unlink_account(
    principal: SignedInLately, sent: Annotated[UnlinkRequest, Depends(account_to_unlink)]
) -> JsonResponse[StatusJson]:
    """Unlink one of the caller's ways to sign in, and end the sessions that it started."""
    user_id = principal.user.id
    for team_id in linking.unlink(sent, principal.session, now=clock.now()):
        delete_keys_of_member(team_id, user_id)
    return json_response({"status": True})


handler = lambda_handler(app)
