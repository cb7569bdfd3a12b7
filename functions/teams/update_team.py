from typing import Annotated

from larder import clock
from larder.errors import TeamNotFound
from larder.teams import teams
from larder.teams.models import TeamMembership
from larder.teams.teams import TeamChange
from larder.web.app import lambda_handler, vercel_api
from larder.web.audit_log import audit
from larder.web.bodies.teams import team_change
from larder.web.powertools.resolver import Depends
from larder.web.principals.team_bodies import TeamEditor
from larder.web.replies.clients import TeamJson, team_json
from larder.web.responses import JsonResponse, json_response

app = vercel_api(no_route=TeamNotFound)


@app.patch("/v2/teams/<id_or_slug>")
def update_team(
    change: Annotated[TeamChange, Depends(team_change)], principal: TeamEditor, id_or_slug: str
) -> JsonResponse[TeamJson]:
    """Change the name, the slug, the caching status, `runInputs` or `buildHourCents`."""
    team = teams.change_team(
        principal.team.id, change, by=principal.member, actor=principal.actor, now=clock.now()
    )
    audit("team_changed", principal.actor, owner=principal.team.id, subject=",".join(change.named))
    return json_response(team_json(TeamMembership(team=team, member=principal.member)))


handler = lambda_handler(app)
