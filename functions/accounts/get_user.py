from typing import TypedDict

from larder.accounts.service import find_user
from larder.errors import Unauthenticated
from larder.web.app import lambda_handler, vercel_api
from larder.web.principals.authenticate import Authenticated
from larder.web.replies.clients import ClientUserJson, client_user_json
from larder.web.responses import JsonResponse, json_response

app = vercel_api()


class CurrentUserJson(TypedDict):
    user: ClientUserJson


@app.get("/v2/user")
def get_user(principal: Authenticated) -> JsonResponse[CurrentUserJson]:
    """Get the user of the presented token."""
    user = find_user(principal.user_id)
    if user is None:
        raise Unauthenticated
    return json_response({"user": client_user_json(user)})


handler = lambda_handler(app)
