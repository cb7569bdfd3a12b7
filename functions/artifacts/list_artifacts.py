"""GET /v1/artifacts"""

from larder import clock
from larder.artifacts import management
from larder.web.app import cache_api, lambda_handler
from larder.web.callers.cache import CacheManager
from larder.web.queries.artifacts import ArtifactsAsked
from larder.web.replies.artifacts import ArtifactsJson, artifacts_json
from larder.web.responses import JsonResponse, json_response

app = cache_api()


@app.get("/v1/artifacts")
def list_artifacts(asked: ArtifactsAsked, caller: CacheManager) -> JsonResponse[ArtifactsJson]:
    """GET /v1/artifacts: the artifacts of the team or the user, a page at a time, by hash."""
    page = management.list_artifacts(
        caller.owner, after=asked.after, limit=asked.limit, now=clock.now()
    )
    return json_response(artifacts_json(page))


handler = lambda_handler(app)
