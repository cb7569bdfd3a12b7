"""POST /api/auth/api-key/verify"""

from larder import clock
from larder.api_keys import service
from larder.web.app import auth_api, lambda_handler
from larder.web.bodies.api_keys import VerifyBody
from larder.web.replies.api_keys import RefusedKeyJson, ValidKeyJson, verification_json
from larder.web.responses import JsonResponse, json_response

app = auth_api()


@app.post("/api/auth/api-key/verify")
def verify_api_key(presented: VerifyBody) -> JsonResponse[ValidKeyJson | RefusedKeyJson]:
    """POST /api/auth/api-key/verify: whether a key is valid now and has the required permissions. Takes one use."""
    now = clock.now()
    verification = service.verify(presented.key_hash, presented.permissions, now=now)
    service.clean_up(now=now)
    return json_response(verification_json(verification))


handler = lambda_handler(app)
