from typing import TypedDict

from larder.web.app import lambda_handler, vercel_api
from larder.web.principals.authenticate import Authenticated
from larder.web.replies.clients import TokenJson, token_json
from larder.web.responses import JsonResponse, json_response

app = vercel_api()


class CurrentTokenJson(TypedDict):
    token: TokenJson


@app.get("/v5/user/tokens/current")
def get_current_token(principal: Authenticated) -> JsonResponse[CurrentTokenJson]:
    """Get the permissions and expiry of the presented key or session."""
    return json_response({"token": token_json(principal)})


handler = lambda_handler(app)
