"""GET /v1/artifacts/{hash}"""

from larder import clock
from larder.artifacts import service
from larder.web.app import cache_api, lambda_handler
from larder.web.callers.cache import CacheManager
from larder.web.parameters import NoOtherParameters
from larder.web.replies.artifacts import ArtifactJson, artifact_json
from larder.web.responses import JsonResponse, json_response

app = cache_api()


@app.get("/v1/artifacts/<artifact_hash>")
def inspect_artifact(
    _query: NoOtherParameters, caller: CacheManager, artifact_hash: str
) -> JsonResponse[ArtifactJson]:
    """GET /v1/artifacts/{hash}: what is known about one artifact, and who wrote it."""
    artifact = service.find(caller.entry, quota_bytes=caller.quota_bytes, now=clock.now())
    return json_response(artifact_json(artifact))


handler = lambda_handler(app)
