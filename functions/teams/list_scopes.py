from typing import Annotated

from larder.errors import TeamNotFound
from larder.trust import scopes
from larder.web.app import lambda_handler, vercel_api
from larder.web.powertools.resolver import Depends
from larder.web.principals.team import ScopeReader
from larder.web.queries.teams import ScopesQuery, scopes_query
from larder.web.replies.scopes import ScopesJson, scopes_json
from larder.web.responses import JsonResponse, json_response

app = vercel_api(no_route=TeamNotFound)


@app.get("/v1/teams/<id_or_slug>/scopes")
def list_scopes(
    query: Annotated[ScopesQuery, Depends(scopes_query)], principal: ScopeReader, id_or_slug: str
) -> JsonResponse[ScopesJson]:
    """List the own scopes of the team, with who writes them and how much they hold."""
    page = scopes.page_of_scopes(
        principal.team.id, principal.team.state, after=query.after, limit=query.limit
    )
    return json_response(scopes_json(page))


handler = lambda_handler(app)
