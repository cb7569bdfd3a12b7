from larder import clock
from larder.api_keys.keys import delete_keys_of_member
from larder.errors import TeamNotFound
from larder.invitations import service
from larder.trust.makers import notify_of_member
from larder.web.app import lambda_handler, vercel_api
from larder.web.audit_log import audit
from larder.web.mail_context import RequestMailContext
from larder.web.principals.team import MemberRemover
from larder.web.replies.teams import TeamIdJson
from larder.web.responses import JsonResponse, json_response

app = vercel_api(no_route=TeamNotFound)


@app.delete("/v1/teams/<id_or_slug>/members/<uid>")
def remove_member(
    principal: MemberRemover, mail_context: RequestMailContext, id_or_slug: str, uid: str
) -> JsonResponse[TeamIdJson]:
    """Remove a member, leave the team, or withdraw an invitation."""
    service.remove_member_or_withdraw(
        principal.team.id, uid, by=principal.member, actor=principal.actor, now=clock.now()
    )
    if not service.is_invitation_id(uid):
        notify_of_member(principal.team.id, uid, mail_context)
        delete_keys_of_member(principal.team.id, uid)
    audit("member_removed", principal.actor, owner=principal.team.id, subject=uid)
    return json_response({"id": principal.team.id})


handler = lambda_handler(app)
