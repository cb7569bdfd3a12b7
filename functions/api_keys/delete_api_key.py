from typing import Annotated

from larder import clock
from larder.api_keys import keys, self_service
from larder.web.app import better_auth_api, lambda_handler
from larder.web.audit_log import audit
from larder.web.bodies.api_keys import named_key
from larder.web.powertools.resolver import Depends
from larder.web.principals.session import SignedIn
from larder.web.queries.api_keys import NamedKey
from larder.web.replies.better_auth import SuccessJson
from larder.web.responses import JsonResponse, json_response

app = better_auth_api()


@app.post("/api/auth/api-key/delete")
def delete_api_key(
    named: Annotated[NamedKey, Depends(named_key)], principal: SignedIn
) -> JsonResponse[SuccessJson]:
    """Delete one of the caller's keys, or one that their team owns, from the next request on."""
    key = self_service.delete_key(principal, named.key_id, of_team=named.of_team)
    audit("key_deleted", principal.actor, owner=key.holder_id, subject=key.id)
    keys.delete_expired_keys_if_due(now=clock.now())
    return json_response({"success": True})


handler = lambda_handler(app)
