from typing import Annotated

from larder import clock
from larder.api_keys import keys, self_service
from larder.web.app import better_auth_api, lambda_handler
from larder.web.powertools.resolver import Depends
from larder.web.principals.session import SignedIn
from larder.web.queries.api_keys import NamedKey, queried_key
from larder.web.replies.api_keys import ApiKeyJson, api_key_json
from larder.web.responses import JsonResponse, json_response

app = better_auth_api()


@app.get("/api/auth/api-key/get")
def get_api_key(
    named: Annotated[NamedKey, Depends(queried_key)], principal: SignedIn
) -> JsonResponse[ApiKeyJson]:
    """Get one of the caller's keys, or one that their team owns, without the secret."""
    key = self_service.get_key(principal, named.key_id, of_team=named.of_team)
    keys.delete_expired_keys_if_due(now=clock.now())
    return json_response(api_key_json(key))


handler = lambda_handler(app)
