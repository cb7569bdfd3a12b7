"""POST /v1/teams"""

from larder import clock
from larder.teams import management
from larder.web.app import cache_api, lambda_handler
from larder.web.audit_log import audit
from larder.web.bodies.teams import SentNewTeam
from larder.web.callers.team import TeamMaker
from larder.web.replies.teams import CreatedTeamJson, created_json
from larder.web.responses import JsonResponse, json_response

app = cache_api()


@app.post("/v1/teams")
def create_team(new: SentNewTeam, maker: TeamMaker) -> JsonResponse[CreatedTeamJson]:
    """POST /v1/teams: create a team that the caller owns."""
    team = management.make_team(new.name, new.slug, user_id=maker.user_id, now=clock.now())
    audit("team_created", maker, subject=team.id)
    return json_response(created_json(team))


handler = lambda_handler(app)
