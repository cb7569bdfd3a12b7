"""DELETE /v1/teams/{id}"""

from larder import clock
from larder.errors import TeamNotFound
from larder.teams import management
from larder.web.app import cache_api, lambda_handler
from larder.web.audit_log import audit
from larder.web.callers.team import TeamOwner
from larder.web.replies.teams import TeamIdJson
from larder.web.responses import JsonResponse, json_response

app = cache_api(no_route=TeamNotFound)


@app.delete("/v1/teams/<id_or_slug>")
def delete_team(caller: TeamOwner, id_or_slug: str) -> JsonResponse[TeamIdJson]:
    """DELETE /v1/teams/{id}: delete the team at once. What it stored is deleted within hours."""
    team = management.delete_team(caller.team.id, by=caller.actor, now=clock.now())
    audit("team_deleted", caller, subject=team.id)
    return json_response({"id": team.id})


handler = lambda_handler(app)
