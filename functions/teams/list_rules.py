"""GET /v1/teams/{id}/rules"""

from larder import clock
from larder.errors import TeamNotFound
from larder.trust import rules
from larder.web.app import lambda_handler, vercel_api
from larder.web.principals.team import TeamMember
from larder.web.replies.rules import RulesJson, rule_json
from larder.web.responses import JsonResponse, json_response

app = vercel_api(no_route=TeamNotFound)


@app.get("/v1/teams/<id_or_slug>/rules")
def list_rules(principal: TeamMember, id_or_slug: str) -> JsonResponse[RulesJson]:
    """GET /v1/teams/{id}/rules: list the rules by which CI jobs get tokens of the team."""
    now = clock.now()
    return json_response(
        {"rules": [rule_json(rule, now) for rule in rules.list_rules(principal.team.id)]}
    )


handler = lambda_handler(app)
