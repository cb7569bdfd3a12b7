"""GET /v1/artifacts/{hash}"""

from larder import clock
from larder.artifacts import service
from larder.web.app import cache_api, lambda_handler
from larder.web.parameters import NoOtherParameters
from larder.web.principals.cache import CacheManager
from larder.web.replies.artifacts import ArtifactJson, artifact_json
from larder.web.responses import JsonResponse, json_response

app = cache_api()


@app.get("/v1/artifacts/<artifact_hash>")
def inspect_artifact(
    _query: NoOtherParameters, principal: CacheManager, artifact_hash: str
) -> JsonResponse[ArtifactJson]:
    """GET /v1/artifacts/{hash}: get the details of one artifact, and who uploaded it."""
    artifact = service.find(principal.entry, quota_bytes=principal.quota_bytes, now=clock.now())
    return json_response(artifact_json(artifact))


handler = lambda_handler(app)
