"""DELETE /v3/user/tokens/current"""

from typing import TypedDict

from larder.web.app import cache_api, lambda_handler
from larder.web.callers.cache import TokenHolder, end_credential
from larder.web.responses import JsonResponse, json_response

app = cache_api()


class RevokedTokenJson(TypedDict):
    tokenId: str


@app.delete("/v3/user/tokens/current")
def revoke_current_token(holder: TokenHolder) -> JsonResponse[RevokedTokenJson]:
    """DELETE /v3/user/tokens/current: end the presented key or session. It stops working at once."""
    end_credential(holder.credential)
    return json_response({"tokenId": holder.credential.id})


handler = lambda_handler(app)
