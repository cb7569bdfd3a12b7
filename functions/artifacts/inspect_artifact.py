"""GET /v1/artifacts/{hash}"""

from larder import clock
from larder.artifacts import management
from larder.artifacts.models import parse_scope
from larder.teams.models import SHARED_SCOPE
from larder.web.app import cache_api, lambda_handler
from larder.web.parameters import NamedHash
from larder.web.principals.cache import CacheManager
from larder.web.queries.artifacts import ScopeAsked
from larder.web.replies.artifacts import ArtifactJson, artifact_json
from larder.web.responses import JsonResponse, json_response

app = cache_api()


@app.get("/v1/artifacts/<artifact_hash>")
def inspect_artifact(
    scope: ScopeAsked, principal: CacheManager, artifact_hash: NamedHash
) -> JsonResponse[ArtifactJson]:
    """GET /v1/artifacts/{hash}: get the details of one artifact, and who uploaded it."""
    entry = management.read_in_scope(
        principal.owner, artifact_hash, parse_scope(scope or SHARED_SCOPE), principal.entry
    )
    artifact = management.inspect_artifact(
        entry, view=principal.view, quota_bytes=principal.quota_bytes, now=clock.now()
    )
    return json_response(artifact_json(artifact, with_scope=scope is not None))


handler = lambda_handler(app)
