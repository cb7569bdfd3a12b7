"""GET /v5/user/tokens/current"""

from typing import TypedDict

from larder.web.app import cache_api, lambda_handler
from larder.web.callers.cache import TokenHolder
from larder.web.replies.clients import TokenJson, token_json
from larder.web.responses import JsonResponse, json_response

app = cache_api()


class CurrentTokenJson(TypedDict):
    token: TokenJson


@app.get("/v5/user/tokens/current")
def get_current_token(holder: TokenHolder) -> JsonResponse[CurrentTokenJson]:
    """GET /v5/user/tokens/current: what the presented key or session may do, and when it expires."""
    return json_response({"token": token_json(holder)})


handler = lambda_handler(app)
