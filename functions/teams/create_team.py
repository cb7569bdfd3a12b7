from typing import Annotated

from larder import clock
from larder.teams import teams
from larder.web.app import lambda_handler, vercel_api
from larder.web.audit_log import audit
from larder.web.bodies.teams import NewTeam, new_team
from larder.web.powertools.resolver import Depends
from larder.web.principals.team_bodies import TeamMaker
from larder.web.replies.teams import CreatedTeamJson, created_json
from larder.web.responses import JsonResponse, json_response

app = vercel_api()


@app.post("/v1/teams")
def create_team(
    new: Annotated[NewTeam, Depends(new_team)], principal: TeamMaker
) -> JsonResponse[CreatedTeamJson]:
    """Create a team that the caller owns."""
    team = teams.create_team(
        new.name,
        new.slug,
        owner_user_id=principal.user_id,
        limited=True,
        actor=principal.actor,
        now=clock.now(),
    )
    audit("team_created", principal.actor, owner=principal.user_id, subject=team.id)
    return json_response(created_json(team))


handler = lambda_handler(app)
