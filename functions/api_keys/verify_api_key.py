from typing import Annotated

from larder import clock
from larder.api_keys import keys
from larder.api_keys.verification import verify_presented
from larder.web.app import better_auth_api, lambda_handler
from larder.web.bodies.api_keys import KeyToVerify, verify_body
from larder.web.powertools.resolver import Depends
from larder.web.replies.api_keys import RefusedKeyJson, ValidKeyJson, verification_json
from larder.web.responses import JsonResponse, json_response

app = better_auth_api()


@app.post("/api/auth/api-key/verify")
def verify_api_key(
    sent: Annotated[KeyToVerify, Depends(verify_body)],
) -> JsonResponse[ValidKeyJson | RefusedKeyJson]:
    """Check that a key is valid and has the required permissions. Counts as one use."""
    now = clock.now()
    verification = verify_presented(
        sent.key_hash, sent.permissions, of_team=sent.of_team, now=now, with_metadata=True
    )
    keys.delete_expired_keys_if_due(now=now)
    return json_response(verification_json(verification))


handler = lambda_handler(app)
