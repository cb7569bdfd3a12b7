"""GET /v2/user"""

from aws_lambda_powertools.event_handler import Response

from larder.accounts.service import find_user
from larder.errors import Unauthenticated
from larder.web.app import cache_api, lambda_handler
from larder.web.auth import TokenHolder
from larder.web.client_json import client_user_json
from larder.web.responses import json_response

app = cache_api()


@app.get("/v2/user")
def get_user(holder: TokenHolder) -> Response[str]:
    """GET /v2/user: the user of the presented token."""
    user = find_user(holder.user_id)
    if user is None:
        raise Unauthenticated
    return json_response({"user": client_user_json(user)})


handler = lambda_handler(app)
