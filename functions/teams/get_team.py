from larder.errors import TeamNotFound
from larder.teams import members
from larder.web.app import lambda_handler, vercel_api
from larder.web.principals.authenticate import Authenticated
from larder.web.replies.clients import TeamJson, team_json
from larder.web.responses import JsonResponse, json_response

app = vercel_api(no_route=TeamNotFound)


@app.get("/v2/teams/<id_or_slug>")
def get_team(principal: Authenticated, id_or_slug: str) -> JsonResponse[TeamJson]:
    """Get one of the caller's teams."""
    membership = members.find_membership(id_or_slug, principal.user_id, bound_to=principal.bound_to)
    return json_response(team_json(membership))


handler = lambda_handler(app)
