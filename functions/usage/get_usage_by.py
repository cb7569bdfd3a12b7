from typing import Annotated

from larder.usage import service
from larder.usage.models import Period
from larder.web.app import cache_api, lambda_handler
from larder.web.powertools.resolver import Depends
from larder.web.principals.authorize import CacheManager
from larder.web.queries.usage import period_by_key_query
from larder.web.replies.usage import UsageByJson, usage_by_key_json
from larder.web.responses import JsonResponse, json_response

app = cache_api()


@app.get("/v1/usage/by")
def get_usage_by(
    period: Annotated[Period, Depends(period_by_key_query)], principal: CacheManager
) -> JsonResponse[UsageByJson]:
    """Get the usage of each key and CI rule in a period, the ones with the most tasks first."""
    usage = service.read_usage_by_key(principal.owner, period)
    return json_response(usage_by_key_json(principal.owner, period, usage))


handler = lambda_handler(app)
