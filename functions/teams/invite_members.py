"""POST /v2/teams/{id}/members"""

from larder import clock
from larder.accounts import team_members
from larder.errors import TeamNotFound
from larder.web.app import cache_api, lambda_handler
from larder.web.audit_log import audit
from larder.web.bodies.teams import InvitationsWanted
from larder.web.callers.team import MemberInviter
from larder.web.mail_context import RequestMailContext
from larder.web.replies.teams import InvitationsJson, invitations_json
from larder.web.responses import JsonResponse, json_response

app = cache_api(no_route=TeamNotFound)


@app.post("/v1/teams/<id_or_slug>/members")
@app.post("/v2/teams/<id_or_slug>/members")
def invite_members(
    wanted: InvitationsWanted,
    caller: MemberInviter,
    mail_context: RequestMailContext,
    id_or_slug: str,
) -> JsonResponse[InvitationsJson]:
    """POST /v2/teams/{id}/members: send an invitation to one or several addresses."""
    made = team_members.invite(
        caller.team.id, wanted, mail_context, by=caller.actor, now=clock.now()
    )
    audit("members_invited", caller, subject=",".join(one.id for one in made))
    return json_response(invitations_json(made))


handler = lambda_handler(app)
