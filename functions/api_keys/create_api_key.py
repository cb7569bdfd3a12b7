"""POST /api/auth/api-key/create"""

from larder import clock
from larder.api_keys import manage, service
from larder.web.app import auth_api, lambda_handler
from larder.web.bodies.api_keys import SentNewKey
from larder.web.callers.session import KeyMaker
from larder.web.replies.api_keys import CreatedApiKeyJson, api_key_json
from larder.web.responses import JsonResponse, json_response

app = auth_api()


@app.post("/api/auth/api-key/create")
def create_api_key(new: SentNewKey, caller: KeyMaker) -> JsonResponse[CreatedApiKeyJson]:
    """POST /api/auth/api-key/create: create a key. The reply holds the only copy of it."""
    now = clock.now()
    key, raw = manage.create_key(caller.grantor, new, now=now)
    service.clean_up(now=now)
    return json_response({**api_key_json(key), "key": raw})


handler = lambda_handler(app)
