from typing import Annotated

from larder import clock
from larder.artifacts import reads
from larder.web.app import cache_api, lambda_handler
from larder.web.bodies.cache import query_hashes
from larder.web.powertools.resolver import Depends, Request
from larder.web.principals.authorize import CacheReader
from larder.web.replies.cache import QueryJson, query_json
from larder.web.responses import JsonResponse, json_response

app = cache_api()


@app.post("/v8/artifacts")
def query_artifacts(
    hashes: Annotated[list[str], Depends(query_hashes)], principal: CacheReader, request: Request
) -> JsonResponse[QueryJson]:
    """Get the size, duration and tag of each hash, or null if it is not stored."""
    principal.take(request, requests=len(hashes))
    result = reads.query(
        principal.owner,
        hashes,
        view=principal.view,
        now=clock.now(),
    )
    return json_response(query_json(result))


handler = lambda_handler(app)
