from typing import Annotated

from larder import clock
from larder.api_keys import keys, self_service
from larder.web.app import better_auth_api, lambda_handler
from larder.web.powertools.resolver import Depends
from larder.web.principals.session import SignedIn
from larder.web.queries.api_keys import KeysQuery, keys_query
from larder.web.replies.api_keys import ApiKeyJson, api_key_json, that_fit
from larder.web.responses import MAY_HAVE_NEXT_PAGE, JsonResponse, json_response, next_page

app = better_auth_api()


@app.get("/api/auth/api-key/list")
def list_api_keys(
    asked: Annotated[KeysQuery, Depends(keys_query)], principal: SignedIn
) -> Annotated[JsonResponse[list[ApiKeyJson]], MAY_HAVE_NEXT_PAGE]:
    """List the caller's keys, or those that a team owns, oldest first, without the secrets.

    If there are more, `Link` has the URL of the next page.
    """
    page = self_service.page_of_own_keys(
        principal, asked.organization, limit=asked.limit, offset=asked.offset
    )
    keys.delete_expired_keys_if_due(now=clock.now())
    records = that_fit([api_key_json(key) for key in page.keys])
    has_more = page.has_more or len(records) < len(page.keys)
    following = asked.offset + len(records) if has_more else None
    of_team = {} if asked.organization is None else {"organizationId": asked.organization}
    headers = next_page("/api/auth/api-key/list", limit=asked.limit, offset=following, **of_team)
    return json_response(records, headers=headers)


handler = lambda_handler(app)
