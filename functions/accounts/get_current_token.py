"""GET /v5/user/tokens/current"""

from aws_lambda_powertools.event_handler import Response

from larder.web.app import cache_api, lambda_handler
from larder.web.auth import TokenHolder
from larder.web.client_json import token_json
from larder.web.responses import json_response

app = cache_api()


@app.get("/v5/user/tokens/current")
def get_current_token(holder: TokenHolder) -> Response[str]:
    """GET /v5/user/tokens/current: what the presented key or session may do, and when it expires."""
    return json_response({"token": token_json(holder)})


handler = lambda_handler(app)
