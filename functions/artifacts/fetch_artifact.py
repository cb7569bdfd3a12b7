"""GET /v8/artifacts/{hash}"""

from larder import clock
from larder.artifacts import service
from larder.web.app import HIT_OR_MISS, cache_api, lambda_handler
from larder.web.callers.cache import CacheReader
from larder.web.parameters import Client
from larder.web.responses import ArtifactRedirect, ArtifactResponse, artifact_response, redirect

app = cache_api()


@app.get("/v8/artifacts/<artifact_hash>")
def fetch_artifact(
    _client: Client, caller: CacheReader, artifact_hash: str
) -> ArtifactResponse | ArtifactRedirect:
    """GET /v8/artifacts/{hash}: the artifact, or a redirect to where S3 serves it."""
    now = clock.now()
    artifact = service.find(caller.entry, quota_bytes=caller.quota_bytes, now=now)
    content = service.fetch(artifact, now=now)
    if isinstance(content, bytes):
        return artifact_response(artifact, content)
    return redirect(artifact, content)


handler = lambda_handler(app, outcomes=HIT_OR_MISS)
