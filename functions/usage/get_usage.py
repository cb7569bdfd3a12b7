"""GET /v1/usage"""

from larder.usage import service
from larder.web.app import cache_api, lambda_handler
from larder.web.callers.cache import UsageReader
from larder.web.queries.usage import PeriodAsked
from larder.web.replies.usage import UsageJson, usage_json
from larder.web.responses import JsonResponse, json_response

app = cache_api()


@app.get("/v1/usage")
def get_usage(period: PeriodAsked, caller: UsageReader) -> JsonResponse[UsageJson]:
    """GET /v1/usage: what the cache did in a period, what is stored now, and which limits apply."""
    usage = service.read_usage(caller.owner, period, recent_uploads=caller.totals.uploads)
    return json_response(usage_json(caller, usage))


handler = lambda_handler(app)
