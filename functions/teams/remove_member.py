"""DELETE /v1/teams/{id}/members/{uid}"""

from larder import clock
from larder.errors import TeamNotFound
from larder.invitations import service
from larder.web.app import cache_api, lambda_handler
from larder.web.audit_log import audit
from larder.web.callers.team import MemberRemover
from larder.web.replies.teams import TeamIdJson
from larder.web.responses import JsonResponse, json_response

app = cache_api(no_route=TeamNotFound)


@app.delete("/v1/teams/<id_or_slug>/members/<uid>")
def remove_member(caller: MemberRemover, id_or_slug: str, uid: str) -> JsonResponse[TeamIdJson]:
    """DELETE /v1/teams/{id}/members/{uid}: remove a member, leave the team, or withdraw an invitation."""
    service.remove(caller.team.id, uid, by=caller.actor, now=clock.now())
    audit("member_removed", caller, subject=uid)
    return json_response({"id": caller.team.id})


handler = lambda_handler(app)
