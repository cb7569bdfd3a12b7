"""GET /v8/artifacts/status"""

from larder.web.app import cache_api, lambda_handler
from larder.web.callers.cache import CacheMember
from larder.web.replies.cache import CachingStatusJson
from larder.web.responses import JsonResponse, json_response

app = cache_api()


@app.get("/v8/artifacts/status")
def get_status(caller: CacheMember) -> JsonResponse[CachingStatusJson]:
    """GET /v8/artifacts/status: whether the caller can use the cache: enabled, disabled, paused or over_limit."""
    return json_response({"status": caller.usable_caching})


handler = lambda_handler(app)
