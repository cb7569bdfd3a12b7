"""OPTIONS on the paths of the cache"""

from typing import Annotated

from larder.artifacts import uploads
from larder.web.app import cache_api, lambda_handler
from larder.web.artifact_responses import (
    AUTHORIZATION_ALLOWED,
    PreflightResponse,
    UploadOffer,
    preflight_response,
    upload_offer,
)
from larder.web.parameters import NamedHash
from larder.web.powertools.resolver import Depends
from larder.web.principals.transfers import DirectUploads, PreflightWriter, direct_uploads_of_client

app = cache_api(error_headers=AUTHORIZATION_ALLOWED)


@app.route("/v8/artifacts", method="OPTIONS")
@app.route("/v8/artifacts/events", method="OPTIONS")
@app.route("/v8/artifacts/status", method="OPTIONS")
def preflight_others() -> PreflightResponse:
    """Allow the announced request, with the token, at the same URL."""
    return preflight_response()


@app.route("/v8/artifacts/<artifact_hash>", method="OPTIONS")
def preflight(
    principal: PreflightWriter,
    artifact_hash: NamedHash,
    client: Annotated[DirectUploads, Depends(direct_uploads_of_client)],
) -> PreflightResponse | UploadOffer:
    """Get the URL for an announced request. An upload goes straight to S3."""
    if principal is None:
        return preflight_response()
    url = uploads.offer_upload(
        principal.cache_request(artifact_hash), by_edge_only=client is DirectUploads.BY_EDGE
    )
    return preflight_response() if url is None else upload_offer(url)


handler = lambda_handler(app)
