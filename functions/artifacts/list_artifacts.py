from typing import Annotated

from larder import clock
from larder.artifacts import search
from larder.audit.service import jobs_of
from larder.web.app import cache_api, lambda_handler
from larder.web.powertools.resolver import Depends
from larder.web.principals.authorize import CacheManager
from larder.web.queries.artifacts import ArtifactsQuery, artifacts_query
from larder.web.replies.artifacts import ArtifactsJson, artifacts_json, writers_of
from larder.web.responses import JsonResponse, json_response

app = cache_api()


@app.get("/v1/artifacts")
def list_artifacts(
    query: Annotated[ArtifactsQuery, Depends(artifacts_query)], principal: CacheManager
) -> JsonResponse[ArtifactsJson]:
    """List the artifacts of the team or the user, a page at a time. Filters find some of them."""
    owner, now = principal.owner, clock.now()
    if query.hashes:
        page = search.artifacts_of(owner, query.hashes, query.selection, now=now)
    else:
        page = search.list_artifacts(
            owner,
            query.selection,
            view=principal.view,
            after=query.after,
            limit=query.limit,
            now=now,
        )
    jobs = jobs_of(principal.owner, writers_of(page.artifacts))
    return json_response(
        artifacts_json(page, with_scope=query.names_scope, view=principal.view, jobs=jobs)
    )


handler = lambda_handler(app)
