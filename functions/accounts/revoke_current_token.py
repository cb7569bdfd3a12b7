"""DELETE /v3/user/tokens/current"""

from aws_lambda_powertools.event_handler import Response

from larder.web.app import cache_api, lambda_handler
from larder.web.auth import TokenHolder, end_credential
from larder.web.responses import json_response

app = cache_api()


@app.delete("/v3/user/tokens/current")
def revoke_current_token(holder: TokenHolder) -> Response[str]:
    """DELETE /v3/user/tokens/current: end the presented key or session, from the next request on."""
    end_credential(holder.credential)
    return json_response({"tokenId": holder.credential.id})


handler = lambda_handler(app)
