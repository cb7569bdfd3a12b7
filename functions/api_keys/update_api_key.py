"""POST /api/auth/api-key/update"""

from larder import clock
from larder.api_keys import manage, service
from larder.web.app import auth_api, lambda_handler
from larder.web.bodies.api_keys import SentKeyUpdate
from larder.web.callers.session import KeyMaker
from larder.web.replies.api_keys import ApiKeyJson, api_key_json
from larder.web.responses import JsonResponse, json_response

app = auth_api()


@app.post("/api/auth/api-key/update")
def update_api_key(sent: SentKeyUpdate, caller: KeyMaker) -> JsonResponse[ApiKeyJson]:
    """POST /api/auth/api-key/update: change the fields of one of the caller's keys that the body names."""
    now = clock.now()
    key = manage.update_key(caller.grantor, sent.key_id, sent.changes, now=now)
    service.clean_up(now=now)
    return json_response(api_key_json(key))


handler = lambda_handler(app)
