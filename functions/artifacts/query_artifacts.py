"""POST /v8/artifacts"""

from aws_lambda_powertools.event_handler import Response

from larder import clock
from larder.artifacts import service
from larder.web.app import cache_api, lambda_handler
from larder.web.auth import CacheReader
from larder.web.cache_bodies import QueryHashes
from larder.web.responses import json_response, query_entries

app = cache_api()


@app.post("/v8/artifacts")
def query_artifacts(hashes: QueryHashes, caller: CacheReader) -> Response[str]:
    """POST /v8/artifacts: size, duration and tag of each hash, or null if it is not stored."""
    result = service.query(caller.owner, hashes, quota_bytes=caller.quota_bytes, now=clock.now())
    return json_response(query_entries(result))


handler = lambda_handler(app)
