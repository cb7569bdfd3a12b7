"""POST /v1/teams/join"""

from larder import clock
from larder.accounts import team_members
from larder.errors import TeamNotFound
from larder.web.app import cache_api, lambda_handler
from larder.web.audit_log import audit
from larder.web.bodies.teams import InvitationToken
from larder.web.callers.team import Joiner
from larder.web.replies.teams import JoinedTeamJson, joined_json
from larder.web.responses import JsonResponse, json_response

app = cache_api(no_route=TeamNotFound)


@app.post("/v1/teams/join")
@app.post("/v1/teams/<id_or_slug>/members/teams/join")
def join_team(
    token: InvitationToken, caller: Joiner, id_or_slug: str = ""
) -> JsonResponse[JoinedTeamJson]:
    """POST /v1/teams/join: accept an invitation, by the token of its mail."""
    team, role = team_members.join(caller.user, token, now=clock.now())
    audit("team_joined", caller, subject=team.id)
    return json_response(joined_json(team, role))


handler = lambda_handler(app)
