from larder.web.app import cache_api, lambda_handler
from larder.web.principals.authorize import CacheMember
from larder.web.replies.cache import CachingStatusJson
from larder.web.responses import JsonResponse, json_response

app = cache_api()


@app.get("/v8/artifacts/status")
def get_status(principal: CacheMember) -> JsonResponse[CachingStatusJson]:
    """Get the caching status: enabled, disabled, paused or over_limit."""
    return json_response({"status": principal.usable_caching})


handler = lambda_handler(app)
