"""PATCH /v1/teams/{id}/members/{uid}"""

from larder.errors import TeamNotFound
from larder.teams import management
from larder.web.app import cache_api, lambda_handler
from larder.web.audit_log import audit
from larder.web.bodies.teams import SentRole
from larder.web.callers.team import MemberManager
from larder.web.replies.teams import TeamIdJson
from larder.web.responses import JsonResponse, json_response

app = cache_api(no_route=TeamNotFound)


@app.patch("/v1/teams/<id_or_slug>/members/<uid>")
def change_member(
    role: SentRole, caller: MemberManager, id_or_slug: str, uid: str
) -> JsonResponse[TeamIdJson]:
    """PATCH /v1/teams/{id}/members/{uid}: change a member's role. It counts from their next request."""
    management.change_member(caller.team.id, uid, role, by=caller.actor)
    audit(f"role_set_{role.value}", caller, subject=uid)
    return json_response({"id": caller.team.id})


handler = lambda_handler(app)
