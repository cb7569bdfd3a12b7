"""GET /v8/artifacts/status"""

from aws_lambda_powertools.event_handler import Response

from larder.web.app import cache_api, lambda_handler
from larder.web.auth import CacheMember
from larder.web.responses import json_response

app = cache_api()


@app.get("/v8/artifacts/status")
def get_status(caller: CacheMember) -> Response[str]:
    """GET /v8/artifacts/status: whether the caller can use the cache: enabled, disabled, paused or over_limit."""
    return json_response({"status": caller.usable_caching.value})


handler = lambda_handler(app)
