from larder import clock
from larder.errors import TeamNotFound
from larder.trust import rules
from larder.trust.makers import makers_of
from larder.web.app import lambda_handler, vercel_api
from larder.web.principals.team import TeamMember
from larder.web.replies.rules import RuleJson, rule_json
from larder.web.responses import JsonResponse, json_response

app = vercel_api(no_route=TeamNotFound)


@app.get("/v1/teams/<id_or_slug>/rules/<rule_id>")
def get_rule(principal: TeamMember, id_or_slug: str, rule_id: str) -> JsonResponse[RuleJson]:
    """Get one rule of the team."""
    rule = rules.find_rule(principal.team.id, rule_id)
    return json_response(rule_json(rule, makers_of(rule.team_id, [rule]), clock.now()))


handler = lambda_handler(app)
