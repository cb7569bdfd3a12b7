from typing import Annotated

from larder import clock
from larder.accounts.team_notices import notify_owners_of_pinned_rule
from larder.trust import exchange
from larder.trust.models import ExchangeRequest
from larder.web.app import lambda_handler, oauth_api
from larder.web.bodies.oauth import ACCESS_TOKEN_TYPE, exchange_form
from larder.web.client_address import counted_address
from larder.web.log import logger
from larder.web.mail_context import RequestMailContext
from larder.web.powertools.resolver import Depends, Request
from larder.web.replies.rules import CiTokenJson, ci_token_json
from larder.web.responses import JsonResponse, json_response

app = oauth_api()


@app.post("/login/oauth/token")
def exchange_id_token(
    sent: Annotated[ExchangeRequest, Depends(exchange_form)],
    mail_context: RequestMailContext,
    request: Request,
) -> JsonResponse[CiTokenJson]:
    """Exchange the id token of a CI job for a key of a team, by the team's rules."""
    token = exchange.exchange(
        sent, origin=mail_context.base_url, client=counted_address(request), now=clock.now()
    )
    if token.has_pinned:
        notify_owners_of_pinned_rule(token.team.id, token.match.rule.id, mail_context)
    logger().append_keys(key_id=token.key.id, rule_id=token.key.rule_id, owner=token.team.id)
    return json_response(ci_token_json(token, ACCESS_TOKEN_TYPE))


handler = lambda_handler(app)
