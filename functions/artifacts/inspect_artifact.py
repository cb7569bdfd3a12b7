from typing import Annotated

from larder import clock
from larder.artifacts import management, search
from larder.artifacts.models import parse_scope
from larder.artifacts.selection import ALL_SCOPES
from larder.audit.service import jobs_of
from larder.web.app import cache_api, lambda_handler
from larder.web.parameters import NamedHash
from larder.web.powertools.resolver import Depends
from larder.web.principals.authorize import CacheManager
from larder.web.queries.artifacts import ArtifactsQuery, artifact_query
from larder.web.replies.artifacts import (
    ArtifactJson,
    ArtifactsJson,
    artifact_json,
    artifacts_json,
    writers_of,
)
from larder.web.responses import JsonResponse, json_response

app = cache_api()


@app.get("/v1/artifacts/<artifact_hash>")
def inspect_artifact(
    query: Annotated[ArtifactsQuery, Depends(artifact_query)],
    principal: CacheManager,
    artifact_hash: NamedHash,
) -> JsonResponse[ArtifactJson | ArtifactsJson]:
    """Get the details of one artifact, and who uploaded it."""
    now = clock.now()
    if query.selection.scope == ALL_SCOPES:
        page = search.list_scopes_of(
            principal.owner,
            artifact_hash,
            principal.entry,
            after=query.after,
            limit=query.limit,
            now=now,
        )
        jobs = jobs_of(principal.owner, writers_of(page.artifacts))
        return json_response(artifacts_json(page, with_scope=True, view=principal.view, jobs=jobs))
    entry = management.read_in_scope(
        principal.owner, artifact_hash, parse_scope(query.selection.scope), principal.entry
    )
    artifact = management.inspect_artifact(entry, view=principal.view, now=now)
    jobs = jobs_of(principal.owner, writers_of([artifact]))
    return json_response(
        artifact_json(artifact, with_scope=query.names_scope, view=principal.view, jobs=jobs)
    )


handler = lambda_handler(app)
