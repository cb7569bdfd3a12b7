"""GET /registration/verify"""

from aws_lambda_powertools.event_handler import Response

from larder import clock
from larder.api_keys import logins
from larder.web.app import cache_api, lambda_handler
from larder.web.client_json import exchanged_json
from larder.web.log import logger
from larder.web.login_code import SentCode
from larder.web.responses import NO_STORE, json_response

app = cache_api()


@app.get("/registration/verify")
def exchange_login_code(sent: SentCode) -> Response[str]:
    """GET /registration/verify: exchange the code of a team's login for a key, once."""
    key, raw = logins.exchange_code(sent.code, sent.client_name, now=clock.now())
    logger().append_keys(user_id=key.user_id, key_id=key.id)
    return json_response(exchanged_json(key, raw), headers=NO_STORE)


handler = lambda_handler(app)
