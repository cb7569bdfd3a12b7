from typing import Annotated

from larder import clock
from larder.accounts import team_invitations
from larder.errors import TeamNotFound
from larder.web.app import lambda_handler, vercel_api
from larder.web.audit_log import audit
from larder.web.bodies.teams import invitation_token
from larder.web.powertools.resolver import Depends
from larder.web.principals.authenticate import Authenticated
from larder.web.principals.team_bodies import Joiner
from larder.web.replies.teams import JoinedTeamJson, joined_json
from larder.web.responses import JsonResponse, json_response

app = vercel_api(no_route=TeamNotFound)


@app.post("/v1/teams/join")
@app.post("/v1/teams/<id_or_slug>/members/teams/join")
def join_team(
    token: Annotated[str, Depends(invitation_token)],
    user: Joiner,
    principal: Authenticated,
    id_or_slug: str = "",
) -> JsonResponse[JoinedTeamJson]:
    """Accept an invitation with the token from its email."""
    team, role = team_invitations.join_team(user, token, actor=principal.actor, now=clock.now())
    audit("team_joined", principal.actor, owner=user.id, subject=team.id)
    return json_response(joined_json(team, role))


handler = lambda_handler(app)
