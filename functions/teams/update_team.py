"""PATCH /v2/teams/{idOrSlug}"""

from larder import clock
from larder.errors import TeamNotFound
from larder.teams import management
from larder.teams.models import TeamMembership
from larder.web.app import cache_api, lambda_handler
from larder.web.audit_log import audit
from larder.web.bodies.teams import SentTeamChange
from larder.web.callers.team import TeamEditor
from larder.web.replies.clients import TeamJson, team_json
from larder.web.responses import JsonResponse, json_response

app = cache_api(no_route=TeamNotFound)


@app.patch("/v2/teams/<id_or_slug>")
def update_team(
    change: SentTeamChange, caller: TeamEditor, id_or_slug: str
) -> JsonResponse[TeamJson]:
    """PATCH /v2/teams/{idOrSlug}: change the name, the slug or the caching status."""
    team = management.change_team(caller.team.id, change, by=caller.actor, now=clock.now())
    audit("team_changed", caller, subject=",".join(change.named))
    return json_response(team_json(TeamMembership(team=team, member=caller.member)))


handler = lambda_handler(app)
