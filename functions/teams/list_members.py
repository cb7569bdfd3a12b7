from typing import Annotated

from larder import clock
from larder.accounts import team_members
from larder.errors import TeamNotFound
from larder.web.app import lambda_handler, vercel_api
from larder.web.powertools.resolver import Depends
from larder.web.principals.team import TeamMember
from larder.web.queries.teams import MembersQuery, members_query
from larder.web.replies.members import MembersJson, members_json
from larder.web.responses import JsonResponse, json_response

app = vercel_api(no_route=TeamNotFound)


@app.get("/v3/teams/<id_or_slug>/members")
def list_members(
    query: Annotated[MembersQuery, Depends(members_query)], principal: TeamMember, id_or_slug: str
) -> JsonResponse[MembersJson]:
    """List the team's members, newest first. Owners and admins also see invitations."""
    page = team_members.page_with_users(
        principal.team.id,
        since=query.since,
        until=query.until,
        limit=query.limit,
        seen_by=principal.member.role,
        now=clock.now(),
    )
    return json_response(members_json(page))


handler = lambda_handler(app)
