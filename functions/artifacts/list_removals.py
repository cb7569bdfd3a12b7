from typing import Annotated

from larder.artifacts import removals
from larder.web.app import cache_api, lambda_handler
from larder.web.powertools.resolver import Depends
from larder.web.principals.authorize import CacheManager
from larder.web.queries.artifacts import RemovalsQuery, removals_query
from larder.web.replies.removals import RemovalsJson, removals_json
from larder.web.responses import JsonResponse, json_response

app = cache_api()


@app.get("/v1/artifacts/removals")
def list_removals(
    query: Annotated[RemovalsQuery, Depends(removals_query)], principal: CacheManager
) -> JsonResponse[RemovalsJson]:
    """List the removals of the last day, and what each has deleted so far."""
    page = removals.open_removals(principal.owner, after=query.after, limit=query.limit)
    return json_response(removals_json(page))


handler = lambda_handler(app)
