"""OPTIONS on the paths of the cache"""

from larder import clock
from larder.artifacts import service
from larder.web.app import cache_api, lambda_handler
from larder.web.callers.cache import AnnouncedWriter
from larder.web.parameters import NamedHash
from larder.web.responses import (
    AUTHORIZATION_ALLOWED,
    PreflightResponse,
    UploadOffer,
    preflight_response,
    upload_offer,
)

app = cache_api(error_headers=AUTHORIZATION_ALLOWED)


@app.route("/v8/artifacts", method="OPTIONS")
@app.route("/v8/artifacts/events", method="OPTIONS")
@app.route("/v8/artifacts/status", method="OPTIONS")
def preflight_others() -> PreflightResponse:
    """OPTIONS elsewhere: where to send an announced request: to the same URL, with the token."""
    return preflight_response()


@app.route("/v8/artifacts/<artifact_hash>", method="OPTIONS")
def preflight(caller: AnnouncedWriter, artifact_hash: NamedHash) -> PreflightResponse | UploadOffer:
    """OPTIONS /v8/artifacts/{hash}: where to send an announced request. An upload goes straight to S3."""
    if caller is None:
        return preflight_response()
    url = service.offer_upload(caller.owner, artifact_hash, writer=caller.writer, now=clock.now())
    return upload_offer(url)


handler = lambda_handler(app)
