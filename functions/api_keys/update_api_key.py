from typing import Annotated

from larder import clock
from larder.api_keys import keys, self_service
from larder.web.app import better_auth_api, lambda_handler
from larder.web.audit_log import audit
from larder.web.bodies.api_keys import SentUpdate, sent_update
from larder.web.key_notice import notify_if_never_expires
from larder.web.mail_context import RequestMailContext
from larder.web.powertools.resolver import Depends, Request
from larder.web.principals.session import KeyMaker, is_fresh
from larder.web.replies.api_keys import ApiKeyJson, api_key_json
from larder.web.request_context import request_context
from larder.web.responses import JsonResponse, json_response

app = better_auth_api()


@app.post("/api/auth/api-key/update")
def update_api_key(
    sent: Annotated[SentUpdate, Depends(sent_update)],
    principal: KeyMaker,
    request: Request,
    mail_context: RequestMailContext,
) -> JsonResponse[ApiKeyJson]:
    """Change the fields that the body names, of one of the caller's keys or one that their team owns."""
    now = clock.now()
    key = self_service.update_key(
        principal,
        sent.key_id,
        sent.changes,
        of_team=sent.of_team,
        fresh=is_fresh(principal),
        ctx=request_context(request),
        now=now,
    )
    audit("key_changed", principal.actor, owner=key.holder_id, subject=key.id)
    if sent.changes.expires_in_s is None:
        notify_if_never_expires(key, principal, mail_context)
    keys.delete_expired_keys_if_due(now=now)
    return json_response(api_key_json(key))


handler = lambda_handler(app)
