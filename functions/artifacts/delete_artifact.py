from typing import Annotated, TypedDict

from larder import clock
from larder.artifacts import management
from larder.artifacts.models import parse_scope
from larder.teams.models import SHARED_SCOPE
from larder.web.app import cache_api, lambda_handler
from larder.web.audit_log import audit_entry
from larder.web.parameters import NamedHash
from larder.web.powertools.resolver import Depends
from larder.web.principals.authorize import CacheManager
from larder.web.queries.artifacts import scope_query
from larder.web.responses import JsonResponse, json_response

app = cache_api()


class DeletedArtifactJson(TypedDict):
    hash: str
    deleted: bool


@app.delete("/v1/artifacts/<artifact_hash>")
def delete_artifact(
    scope: Annotated[str | None, Depends(scope_query)],
    principal: CacheManager,
    artifact_hash: NamedHash,
) -> JsonResponse[DeletedArtifactJson]:
    """Delete one artifact. The reply says whether there was one."""
    own_scope = parse_scope(scope or SHARED_SCOPE)
    entry = management.delete_artifact(
        principal.owner,
        artifact_hash,
        management.read_in_scope(principal.owner, artifact_hash, own_scope, principal.entry),
        by=principal.actor,
        scope=own_scope,
        view=principal.view,
        now=clock.now(),
    )
    audit_entry(entry)
    return json_response({"hash": artifact_hash, "deleted": entry is not None})


handler = lambda_handler(app)
