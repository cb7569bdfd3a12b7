from typing import Annotated

from larder import clock
from larder.actor import CODE, Actor
from larder.turbo_login import service
from larder.web.app import lambda_handler, vercel_api
from larder.web.audit_log import audit
from larder.web.log import logger
from larder.web.powertools.resolver import Depends
from larder.web.replies.clients import TeamKeyJson, team_key_json
from larder.web.responses import JsonResponse, json_response
from larder.web.turbo_login.parameters import Code, sent_code

app = vercel_api()


@app.get("/registration/verify")
def exchange_login_code(sent: Annotated[Code, Depends(sent_code)]) -> JsonResponse[TeamKeyJson]:
    """Exchange the code of a team's login for a key, once."""
    key, raw = service.exchange_code(sent.code, sent.client_name, now=clock.now())
    logger().append_keys(user_id=key.user_id, key_id=key.id)
    audit("key_created", Actor(CODE, key.user_id), owner=key.user_id, subject=key.id)
    return json_response(team_key_json(key, raw))


handler = lambda_handler(app)
