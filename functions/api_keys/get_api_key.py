"""GET /api/auth/api-key/get"""

from larder import clock
from larder.api_keys import manage, service
from larder.web.app import auth_api, lambda_handler
from larder.web.bodies.api_keys import QueriedKey
from larder.web.callers.session import SignedIn
from larder.web.replies.api_keys import ApiKeyJson, api_key_json
from larder.web.responses import JsonResponse, json_response

app = auth_api()


@app.get("/api/auth/api-key/get")
def get_api_key(key_id: QueriedKey, caller: SignedIn) -> JsonResponse[ApiKeyJson]:
    """GET /api/auth/api-key/get: one of the caller's keys, without the secret."""
    key = manage.get_key(caller.grantor, key_id)
    service.clean_up(now=clock.now())
    return json_response(api_key_json(key))


handler = lambda_handler(app)
