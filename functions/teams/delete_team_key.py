from larder.api_keys import keys
from larder.errors import TeamNotFound
from larder.web.app import lambda_handler, vercel_api
from larder.web.audit_log import audit
from larder.web.principals.team import MemberManager
from larder.web.replies.team_keys import DeletedKeyJson
from larder.web.responses import JsonResponse, json_response

app = vercel_api(no_route=TeamNotFound)


@app.delete("/v1/teams/<id_or_slug>/keys/<key_id>")
def delete_team_key(
    principal: MemberManager, id_or_slug: str, key_id: str
) -> JsonResponse[DeletedKeyJson]:
    """Delete an API key that is bound to the team, from the next request on."""
    keys.delete_team_key(principal.team.id, key_id, actor=principal.actor)
    audit("key_deleted", principal.actor, owner=principal.team.id, subject=key_id)
    return json_response({"id": key_id})


handler = lambda_handler(app)
