from larder import clock
from larder.artifacts import reads
from larder.web.app import HIT_OR_MISS, cache_api, lambda_handler
from larder.web.artifact_responses import ArtifactHead, artifact_head
from larder.web.powertools.resolver import Request
from larder.web.principals.authorize import CacheReader

app = cache_api()


@app.route("/v8/artifacts/<artifact_hash>", method="HEAD")
def artifact_exists(principal: CacheReader, artifact_hash: str, request: Request) -> ArtifactHead:
    """Check that the artifact is stored. The reply has the headers of GET."""
    principal.take(request)
    artifact = reads.find_for_use(
        principal.entry,
        principal.own,
        view=principal.view,
        now=clock.now(),
    )
    return artifact_head(artifact, scoped=principal.view.is_protected)


handler = lambda_handler(app, outcomes=HIT_OR_MISS)
