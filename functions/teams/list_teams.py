"""GET /v2/teams"""

from larder.teams import service
from larder.web.app import cache_api, lambda_handler
from larder.web.callers.cache import TokenHolder
from larder.web.queries.teams import TeamsAsked
from larder.web.replies.clients import TeamsJson, teams_json
from larder.web.responses import JsonResponse, json_response

app = cache_api()


@app.get("/v2/teams")
def list_teams(asked: TeamsAsked, holder: TokenHolder) -> JsonResponse[TeamsJson]:
    """GET /v2/teams: the caller's teams. For a key that is bound to a team, that one."""
    memberships, following = service.list_memberships(
        holder.user_id, bound_to=holder.team_id, after=asked.until, limit=asked.limit
    )
    return json_response(teams_json(memberships, following))


handler = lambda_handler(app)
