from functools import partial

from larder import clock
from larder.artifacts import reads
from larder.web.app import HIT_OR_MISS, cache_api, lambda_handler
from larder.web.artifact_responses import (
    ArtifactRedirect,
    ArtifactResponse,
    artifact_response,
    redirect,
)
from larder.web.parameters import Client
from larder.web.powertools.resolver import Request
from larder.web.principals.transfers import RedirectableReader

app = cache_api()


@app.get("/v8/artifacts/<artifact_hash>")
def fetch_artifact(
    _client: Client, principal: RedirectableReader, artifact_hash: str, request: Request
) -> ArtifactResponse | ArtifactRedirect:
    """Get the artifact, or a redirect to S3 or the edge."""
    now = clock.now()
    artifact = reads.find(
        principal.entry,
        principal.own,
        view=principal.view,
        now=now,
        take=partial(principal.take, request),
    )
    content = reads.fetch(artifact, view=principal.view, now=now)
    if isinstance(content, bytes):
        return artifact_response(artifact, content, scoped=principal.view.is_protected)
    return redirect(artifact, content, scoped=principal.view.is_protected)


handler = lambda_handler(app, outcomes=HIT_OR_MISS)
