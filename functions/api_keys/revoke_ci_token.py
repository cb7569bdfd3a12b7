from larder.api_keys import service
from larder.web.app import lambda_handler, oauth_api
from larder.web.bodies.oauth import RevokedToken
from larder.web.log import logger
from larder.web.responses import EmptyResponse, empty_response

app = oauth_api()


@app.post("/login/oauth/token/revoke")
def revoke_ci_token(token: RevokedToken) -> EmptyResponse:
    """Revoke the token of a CI job. Other tokens get the same reply, and still work."""
    key = service.revoke_ci_token(token)
    if key is not None:
        logger().append_keys(key_id=key.id, owner=key.team_id)
    return empty_response()


handler = lambda_handler(app)
