"""GET /v2/teams/{idOrSlug}"""

from larder.errors import TeamNotFound
from larder.teams import service
from larder.web.app import cache_api, lambda_handler
from larder.web.callers.cache import TokenHolder
from larder.web.replies.clients import TeamJson, team_json
from larder.web.responses import JsonResponse, json_response

app = cache_api(no_route=TeamNotFound)


@app.get("/v2/teams/<id_or_slug>")
def get_team(holder: TokenHolder, id_or_slug: str) -> JsonResponse[TeamJson]:
    """GET /v2/teams/{idOrSlug}: one of the caller's teams."""
    membership = service.find_membership(id_or_slug, holder.user_id, bound_to=holder.team_id)
    return json_response(team_json(membership))


handler = lambda_handler(app)
