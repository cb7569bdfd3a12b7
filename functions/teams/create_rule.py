from typing import Annotated

from larder import clock
from larder.accounts.team_notices import notify_owners_of_protection, notify_owners_of_trust
from larder.errors import TeamNotFound
from larder.teams.protection import first_trust
from larder.trust import rules
from larder.trust.makers import makers_of
from larder.trust.models import NewRule
from larder.web.app import lambda_handler, vercel_api
from larder.web.audit_log import audit
from larder.web.bodies.rules import new_rule, rule_protects_team
from larder.web.mail_context import RequestMailContext
from larder.web.powertools.resolver import Depends
from larder.web.principals.team_bodies import RuleMaker
from larder.web.replies.rules import ProtectingRuleJson, RuleJson, created_rule_json
from larder.web.responses import JsonResponse, json_response

app = vercel_api(no_route=TeamNotFound)


@app.post("/v1/teams/<id_or_slug>/rules")
def create_rule(
    new: Annotated[NewRule, Depends(new_rule)],
    protects: Annotated[bool, Depends(rule_protects_team)],
    principal: RuleMaker,
    id_or_slug: str,
    mail_context: RequestMailContext,
) -> JsonResponse[RuleJson | ProtectingRuleJson]:
    """Add a rule by which jobs of a repository get tokens of the team."""
    now = clock.now()
    trust = first_trust(principal.team.id, protect=protects, actor=principal.actor)
    rule = rules.create_rule(
        principal.team.id,
        new,
        trust=trust,
        by=principal.member,
        origin=mail_context.base_url,
        actor=principal.actor,
        now=now,
    )
    notify_owners_of_trust(
        principal.team.id, mail_context, rule_id=rule.id, made_by=principal.user_id
    )
    audit("rule_added", principal.actor, owner=principal.team.id, subject=rule.id)
    if trust.protects:
        audit("protection_set", principal.actor, owner=principal.team.id, subject="protected")
        notify_owners_of_protection(principal.team.id, mail_context)
    makers = makers_of(principal.team.id, [rule])
    return json_response(created_rule_json(rule, makers, now, protects_team=trust.protects))


handler = lambda_handler(app)
