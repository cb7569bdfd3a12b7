from typing import Annotated

from larder import clock
from larder.errors import TeamNotFound
from larder.teams import protection
from larder.teams.protection import ProtectionChange
from larder.trust.scopes import use_of_shared
from larder.web.app import lambda_handler, vercel_api
from larder.web.audit_log import audit
from larder.web.bodies.teams import sent_protection
from larder.web.powertools.resolver import Depends
from larder.web.principals.team_bodies import TeamProtector
from larder.web.replies.teams import ProtectionJson, protection_json
from larder.web.responses import JsonResponse, json_response

app = vercel_api(no_route=TeamNotFound)


@app.put("/v1/teams/<id_or_slug>/protection")
def set_protection(
    change: Annotated[ProtectionChange, Depends(sent_protection)],
    principal: TeamProtector,
    id_or_slug: str,
) -> JsonResponse[ProtectionJson]:
    """Protect the team, or change or end its protection."""
    team_id = principal.team.id
    changed = protection.change_protection(
        team_id, change, by=principal.member, actor=principal.actor
    )
    subject = "protected" if changed.on else "unprotected"
    audit("protection_set", principal.actor, owner=team_id, subject=subject)
    use = use_of_shared(team_id, changed, now=clock.now())
    return json_response(protection_json(changed, use))


handler = lambda_handler(app)
