from typing import Annotated

from larder import clock
from larder.accounts.team_notices import notify_owners_of_protection
from larder.api_keys import keys, self_service
from larder.web.app import better_auth_api, lambda_handler
from larder.web.audit_log import audit
from larder.web.bodies.api_keys import SentKey, sent_key
from larder.web.key_notice import notify_of_new_key
from larder.web.mail_context import RequestMailContext
from larder.web.powertools.resolver import Depends, Request
from larder.web.principals.session import KeyMaker, is_fresh
from larder.web.replies.api_keys import (
    CreatedApiKeyJson,
    ProtectingApiKeyJson,
    created_key_json,
)
from larder.web.request_context import request_context
from larder.web.responses import JsonResponse, json_response

app = better_auth_api()


@app.post("/api/auth/api-key/create")
def create_api_key(
    sent: Annotated[SentKey, Depends(sent_key)],
    principal: KeyMaker,
    request: Request,
    mail_context: RequestMailContext,
) -> JsonResponse[CreatedApiKeyJson | ProtectingApiKeyJson]:
    """Create a key. The reply holds the only copy of it."""
    now = clock.now()
    key, raw, protects_team = self_service.grant_key(
        principal,
        sent.new,
        by=sent.by,
        protect=sent.protect,
        rotation=sent.rotation,
        fresh=is_fresh(principal),
        ctx=request_context(request),
        now=now,
    )
    audit("key_created", principal.actor, owner=key.holder_id, subject=key.id)
    if sent.rotation is not None:
        audit("key_rotated", principal.actor, owner=key.holder_id, subject=sent.rotation.key_id)
    if protects_team and key.team_id is not None:
        audit("protection_set", principal.actor, owner=key.team_id, subject="protected")
        notify_owners_of_protection(key.team_id, mail_context)
    notify_of_new_key(key, principal, mail_context)
    keys.delete_expired_keys_if_due(now=now)
    return json_response(created_key_json(key, raw, protects_team=protects_team))


handler = lambda_handler(app)
