"""GET /api/auth/api-key/list"""

from larder import clock
from larder.api_keys import service
from larder.web.app import auth_api, lambda_handler
from larder.web.callers.session import SignedIn
from larder.web.replies.api_keys import ApiKeyJson, api_key_json
from larder.web.responses import JsonResponse, json_response

app = auth_api()


@app.get("/api/auth/api-key/list")
def list_api_keys(caller: SignedIn) -> JsonResponse[list[ApiKeyJson]]:
    """GET /api/auth/api-key/list: the caller's keys, oldest first, without the secrets."""
    keys = service.list_keys(caller.user.id)
    service.clean_up(now=clock.now())
    return json_response([api_key_json(key) for key in keys])


handler = lambda_handler(app)
