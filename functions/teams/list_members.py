"""GET /v3/teams/{id}/members"""

from larder import clock
from larder.accounts import team_members
from larder.errors import TeamNotFound
from larder.web.app import cache_api, lambda_handler
from larder.web.callers.team import TeamMember
from larder.web.queries.teams import MembersAsked
from larder.web.replies.teams import MembersJson, members_json
from larder.web.responses import JsonResponse, json_response

app = cache_api(no_route=TeamNotFound)


@app.get("/v3/teams/<id_or_slug>/members")
def list_members(
    asked: MembersAsked, caller: TeamMember, id_or_slug: str
) -> JsonResponse[MembersJson]:
    """GET /v3/teams/{id}/members: the members of the team, newest first. Those who manage them see invitations too."""
    page = team_members.page_of_members(
        caller.team.id,
        since=asked.since,
        until=asked.until,
        limit=asked.limit,
        seen_by=caller.member.role,
        now=clock.now(),
    )
    return json_response(members_json(page))


handler = lambda_handler(app)
