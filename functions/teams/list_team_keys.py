from typing import Annotated

from larder.accounts.team_members import knowers
from larder.api_keys import keys
from larder.errors import TeamNotFound
from larder.web.app import lambda_handler, vercel_api
from larder.web.powertools.resolver import Depends
from larder.web.principals.team import KeyReader
from larder.web.queries.teams import TeamKeysQuery, team_keys_query
from larder.web.replies.team_keys import TeamKeysJson, team_keys_json
from larder.web.responses import JsonResponse, json_response

app = vercel_api(no_route=TeamNotFound)


@app.get("/v1/teams/<id_or_slug>/keys")
def list_team_keys(
    query: Annotated[TeamKeysQuery, Depends(team_keys_query)], principal: KeyReader, id_or_slug: str
) -> JsonResponse[TeamKeysJson]:
    """List the API keys of the team: its own and those of all members that are bound to it, without the secrets."""
    page = keys.page_of_team_keys(principal.team.id, limit=query.limit, offset=query.offset)
    known = knowers(principal.team.id, (one for key in page.keys for one in key.known_to))
    return json_response(team_keys_json(page, query.offset + query.limit, known))


handler = lambda_handler(app)
