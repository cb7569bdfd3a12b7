"""GET /v1/artifacts"""

from larder import clock
from larder.artifacts import management
from larder.teams.models import SHARED_SCOPE
from larder.web.app import cache_api, lambda_handler
from larder.web.principals.cache import CacheManager
from larder.web.queries.artifacts import ArtifactsAsked
from larder.web.replies.artifacts import ArtifactsJson, artifacts_json
from larder.web.responses import JsonResponse, json_response

app = cache_api()


@app.get("/v1/artifacts")
def list_artifacts(asked: ArtifactsAsked, principal: CacheManager) -> JsonResponse[ArtifactsJson]:
    """GET /v1/artifacts: list the artifacts of the team or the user, by hash, a page at a time."""
    page = management.list_artifacts(
        principal.owner,
        after=asked.after,
        limit=asked.limit,
        scope=asked.scope or SHARED_SCOPE,
        now=clock.now(),
    )
    return json_response(artifacts_json(page, with_scope=asked.scope is not None))


handler = lambda_handler(app)
