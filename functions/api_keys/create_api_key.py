"""POST /api/auth/api-key/create"""

from larder import clock
from larder.api_keys import manage, service
from larder.web.app import better_auth_api, lambda_handler
from larder.web.audit_log import audit
from larder.web.bodies.api_keys import SentNewKey
from larder.web.key_notice import notify_if_never_expires
from larder.web.mail_context import RequestMailContext
from larder.web.powertools.resolver import Request
from larder.web.principals.session import KeyMaker
from larder.web.replies.api_keys import CreatedApiKeyJson, api_key_json
from larder.web.request_context import request_context
from larder.web.responses import JsonResponse, json_response

app = better_auth_api()


@app.post("/api/auth/api-key/create")
def create_api_key(
    new: SentNewKey, principal: KeyMaker, request: Request, mail_context: RequestMailContext
) -> JsonResponse[CreatedApiKeyJson]:
    """POST /api/auth/api-key/create: create a key. The reply holds the only copy of it."""
    now = clock.now()
    key, raw = manage.grant_key(principal, new, ctx=request_context(request), now=now)
    audit("key_created", principal.actor, owner=key.user_id, subject=key.id)
    notify_if_never_expires(key, principal, mail_context)
    service.delete_expired_keys_if_due(now=now)
    return json_response({**api_key_json(key), "key": raw})


handler = lambda_handler(app)
