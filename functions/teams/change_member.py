from typing import Annotated

from larder.errors import TeamNotFound
from larder.teams import members
from larder.teams.models import Role
from larder.trust.makers import notify_of_member
from larder.web.app import lambda_handler, vercel_api
from larder.web.audit_log import audit
from larder.web.bodies.teams import sent_role
from larder.web.mail_context import RequestMailContext
from larder.web.powertools.resolver import Depends
from larder.web.principals.team_bodies import RoleGiver
from larder.web.replies.teams import TeamIdJson
from larder.web.responses import JsonResponse, json_response

app = vercel_api(no_route=TeamNotFound)


@app.patch("/v1/teams/<id_or_slug>/members/<uid>")
def change_member(
    role: Annotated[Role, Depends(sent_role)],
    principal: RoleGiver,
    mail_context: RequestMailContext,
    id_or_slug: str,
    uid: str,
) -> JsonResponse[TeamIdJson]:
    """Change a member's role. It applies from their next request."""
    members.change_role(principal.team.id, uid, role, by=principal.member, actor=principal.actor)
    notify_of_member(principal.team.id, uid, mail_context)
    audit(f"role_set_{role.value}", principal.actor, owner=principal.team.id, subject=uid)
    return json_response({"id": principal.team.id})


handler = lambda_handler(app)
