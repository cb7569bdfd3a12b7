"""POST /api/auth/api-key/delete"""

from larder import clock
from larder.api_keys import manage, service
from larder.web.app import auth_api, lambda_handler
from larder.web.bodies.api_keys import NamedKey
from larder.web.callers.session import SignedIn
from larder.web.replies.better_auth import SuccessJson
from larder.web.responses import JsonResponse, json_response

app = auth_api()


@app.post("/api/auth/api-key/delete")
def delete_api_key(key_id: NamedKey, caller: SignedIn) -> JsonResponse[SuccessJson]:
    """POST /api/auth/api-key/delete: delete one of the caller's keys, from the next request on."""
    manage.delete_key(caller.grantor, key_id)
    service.clean_up(now=clock.now())
    return json_response({"success": True})


handler = lambda_handler(app)
