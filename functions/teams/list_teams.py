from typing import Annotated

from larder.teams import members
from larder.web.app import lambda_handler, vercel_api
from larder.web.powertools.resolver import Depends
from larder.web.principals.authenticate import Authenticated
from larder.web.queries.teams import TeamsQuery, teams_query
from larder.web.replies.clients import TeamsJson, teams_json
from larder.web.responses import JsonResponse, json_response

app = vercel_api()


@app.get("/v2/teams")
def list_teams(
    query: Annotated[TeamsQuery, Depends(teams_query)], principal: Authenticated
) -> JsonResponse[TeamsJson]:
    """List the caller's teams. A key that is bound to a team gets only that one."""
    memberships, following = members.list_memberships(
        principal.user_id, bound_to=principal.bound_to, after=query.until, limit=query.limit
    )
    return json_response(teams_json(memberships, following))


handler = lambda_handler(app)
