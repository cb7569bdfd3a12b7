from larder import clock
from larder.errors import TeamNotFound
from larder.trust import rules
from larder.trust.makers import makers_of
from larder.web.app import lambda_handler, vercel_api
from larder.web.principals.team import TeamMember
from larder.web.replies.rules import RulesJson, rule_json
from larder.web.responses import JsonResponse, json_response

app = vercel_api(no_route=TeamNotFound)


@app.get("/v1/teams/<id_or_slug>/rules")
def list_rules(principal: TeamMember, id_or_slug: str) -> JsonResponse[RulesJson]:
    """List the rules by which CI jobs get tokens of the team."""
    found, now = rules.list_rules(principal.team.id), clock.now()
    makers = makers_of(principal.team.id, found)
    return json_response({"rules": [rule_json(rule, makers, now) for rule in found]})


handler = lambda_handler(app)
