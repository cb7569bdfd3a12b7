from typing import Literal, TypedDict

from larder import clock
from larder.api_keys import keys
from larder.web.app import better_auth_api, lambda_handler
from larder.web.principals.session import Operator
from larder.web.responses import JsonResponse, json_response

app = better_auth_api()


class DeletedKeysJson(TypedDict):
    success: Literal[True]
    error: None


@app.post("/api/auth/api-key/delete-all-expired-api-keys")
def delete_expired_api_keys(principal: Operator) -> JsonResponse[DeletedKeysJson]:
    """Delete the expired keys of all users."""
    keys.delete_expired_keys(now=clock.now())
    return json_response({"success": True, "error": None})


handler = lambda_handler(app)
