from typing import Annotated, TypedDict

from larder.artifacts import uploads
from larder.artifacts.models import ArtifactMetadata
from larder.web.app import cache_api, lambda_handler
from larder.web.artifact_responses import artifact_url
from larder.web.parameters import NamedHash, artifact_body, artifact_metadata
from larder.web.powertools.resolver import Depends, Request
from larder.web.principals.authorize import CacheWriter
from larder.web.responses import AcceptedResponse, accepted_response

app = cache_api()


class StoredArtifactJson(TypedDict):
    urls: list[str]


@app.put("/v8/artifacts/<artifact_hash>")
def put_artifact(
    metadata: Annotated[ArtifactMetadata, Depends(artifact_metadata)],
    body: Annotated[bytes, Depends(artifact_body)],
    principal: CacheWriter,
    artifact_hash: NamedHash,
    request: Request,
) -> AcceptedResponse[StoredArtifactJson]:
    """Store an artifact that fits through a function, up to about 4.5 MB."""
    uploads.store(principal.cache_request(artifact_hash), body, metadata)
    return accepted_response({"urls": [artifact_url(request, artifact_hash, principal.team_id)]})


handler = lambda_handler(app)
