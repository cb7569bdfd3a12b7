"""PUT /v8/artifacts/{hash}"""

from aws_lambda_powertools.event_handler import Request, Response

from larder import clock
from larder.artifacts import service
from larder.web.app import cache_api, lambda_handler
from larder.web.auth import CacheWriter
from larder.web.parameters import Body, Metadata, NamedHash
from larder.web.responses import artifact_url, json_response

app = cache_api()


@app.put("/v8/artifacts/<artifact_hash>")
def put_artifact(
    metadata: Metadata,
    body: Body,
    caller: CacheWriter,
    artifact_hash: NamedHash,
    request: Request,
) -> Response[str]:
    """PUT /v8/artifacts/{hash}: store an artifact that fits through a function, up to about 4.5 MB."""
    service.store(
        caller.owner,
        artifact_hash,
        body,
        metadata,
        writer=caller.writer,
        replaces=caller.entry.artifact,
        quota_bytes=caller.quota_bytes,
        now=clock.now(),
    )
    return json_response(
        {"urls": [artifact_url(request, artifact_hash, caller.team_id)]}, status=202
    )


handler = lambda_handler(app)
