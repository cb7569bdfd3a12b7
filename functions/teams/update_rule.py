from typing import Annotated

from larder import clock
from larder.errors import TeamNotFound
from larder.trust import rules
from larder.trust.makers import makers_of
from larder.trust.models import RuleChange
from larder.web.app import lambda_handler, vercel_api
from larder.web.audit_log import audit
from larder.web.bodies.rules import rule_change
from larder.web.powertools.resolver import Depends
from larder.web.principals.team_bodies import RuleChanger
from larder.web.replies.rules import RuleJson, rule_json
from larder.web.responses import JsonResponse, json_response

app = vercel_api(no_route=TeamNotFound)


@app.patch("/v1/teams/<id_or_slug>/rules/<rule_id>")
def update_rule(
    change: Annotated[RuleChange, Depends(rule_change)],
    principal: RuleChanger,
    id_or_slug: str,
    rule_id: str,
) -> JsonResponse[RuleJson]:
    """Change, enable or disable a rule. Its tokens end at once."""
    now = clock.now()
    rule = rules.change_rule(
        principal.team.id, rule_id, change, by=principal.member, actor=principal.actor, now=now
    )
    audit("rule_changed", principal.actor, owner=principal.team.id, subject=rule.id)
    return json_response(rule_json(rule, makers_of(rule.team_id, [rule]), now))


handler = lambda_handler(app)
