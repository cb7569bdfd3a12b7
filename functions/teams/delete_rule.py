from larder.errors import TeamNotFound
from larder.trust import rules
from larder.web.app import lambda_handler, vercel_api
from larder.web.audit_log import audit
from larder.web.principals.team import RuleManager
from larder.web.replies.rules import RemovedRuleJson
from larder.web.responses import JsonResponse, json_response

app = vercel_api(no_route=TeamNotFound)


@app.delete("/v1/teams/<id_or_slug>/rules/<rule_id>")
def delete_rule(
    principal: RuleManager, id_or_slug: str, rule_id: str
) -> JsonResponse[RemovedRuleJson]:
    """Delete a rule. Its tokens end at once."""
    rule = rules.delete_rule(principal.team.id, rule_id, by=principal.member, actor=principal.actor)
    audit("rule_removed", principal.actor, owner=principal.team.id, subject=rule.id)
    return json_response({"id": rule.id})


handler = lambda_handler(app)
