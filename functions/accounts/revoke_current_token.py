from typing import TypedDict

from larder.web.app import lambda_handler, vercel_api
from larder.web.principals.authenticate import Authenticated, revoke_credential
from larder.web.responses import JsonResponse, json_response

app = vercel_api()


class RevokedTokenJson(TypedDict):
    tokenId: str


@app.delete("/v3/user/tokens/current")
def revoke_current_token(principal: Authenticated) -> JsonResponse[RevokedTokenJson]:
    """End the presented key or session. It stops working at once."""
    revoke_credential(principal)
    return json_response({"tokenId": principal.credential.id})


handler = lambda_handler(app)
