from typing import Annotated

from larder.api_keys import keys
from larder.web.app import lambda_handler, oauth_api
from larder.web.bodies.oauth import token_to_revoke
from larder.web.log import logger
from larder.web.powertools.resolver import Depends
from larder.web.responses import EmptyResponse, empty_response

app = oauth_api()


@app.post("/login/oauth/token/revoke")
def revoke_ci_token(token: Annotated[str | None, Depends(token_to_revoke)]) -> EmptyResponse:
    """Revoke the token of a CI job. Other tokens get the same reply, and still work."""
    key = keys.revoke_ci_token(token)
    if key is not None:
        logger().append_keys(key_id=key.id, owner=key.team_id)
    return empty_response()


handler = lambda_handler(app)
