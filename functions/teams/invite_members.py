from typing import Annotated

from larder import clock
from larder.accounts import team_invitations
from larder.accounts.team_invitations import InvitationWanted
from larder.errors import TeamNotFound
from larder.web.app import lambda_handler, vercel_api
from larder.web.audit_log import audit
from larder.web.bodies.teams import sent_invitations
from larder.web.mail_context import RequestMailContext
from larder.web.powertools.resolver import Depends
from larder.web.principals.team_bodies import Inviter
from larder.web.replies.invitations import InvitationsJson, invitations_json
from larder.web.responses import JsonResponse, json_response

app = vercel_api(no_route=TeamNotFound)


@app.post("/v1/teams/<id_or_slug>/members")
@app.post("/v2/teams/<id_or_slug>/members")
def invite_members(
    wanted: Annotated[list[InvitationWanted], Depends(sent_invitations)],
    principal: Inviter,
    mail_context: RequestMailContext,
    id_or_slug: str,
) -> JsonResponse[InvitationsJson]:
    """Send an invitation to one or several addresses."""
    made = team_invitations.send_invitations(
        principal.team.id,
        wanted,
        mail_context,
        by=principal.member,
        actor=principal.actor,
        now=clock.now(),
    )
    audit(
        "members_invited",
        principal.actor,
        owner=principal.team.id,
        subject=",".join(one.id for one in made),
    )
    return json_response(invitations_json(made))


handler = lambda_handler(app)
