from larder import clock
from larder.errors import TeamNotFound
from larder.teams import teams
from larder.web.app import lambda_handler, vercel_api
from larder.web.audit_log import audit
from larder.web.principals.team import TeamOwner
from larder.web.replies.teams import TeamIdJson
from larder.web.responses import JsonResponse, json_response

app = vercel_api(no_route=TeamNotFound)


@app.delete("/v1/teams/<id_or_slug>")
def delete_team(principal: TeamOwner, id_or_slug: str) -> JsonResponse[TeamIdJson]:
    """Delete the team at once. Its artifacts are deleted within hours."""
    team = teams.delete_team(
        principal.team.id, by=principal.member, actor=principal.actor, now=clock.now()
    )
    audit("team_deleted", principal.actor, owner=principal.team.id, subject=team.id)
    return json_response({"id": team.id})


handler = lambda_handler(app)
