from collections.abc import Mapping
from typing import Annotated, Any

from larder import clock
from larder.errors import TeamNotFound
from larder.trust import rules
from larder.web.app import lambda_handler, vercel_api
from larder.web.bodies.rules import sent_claims
from larder.web.powertools.resolver import Depends, Request
from larder.web.principals.team import RuleManager
from larder.web.replies.rules import ExplanationsJson, explanation_json
from larder.web.request_context import base_url
from larder.web.responses import JsonResponse, json_response

app = vercel_api(no_route=TeamNotFound)


@app.post("/v1/teams/<id_or_slug>/rules/explain")
def explain_rules(
    claims: Annotated[Mapping[str, Any], Depends(sent_claims)],
    principal: RuleManager,
    id_or_slug: str,
    request: Request,
) -> JsonResponse[ExplanationsJson]:
    """Explain which rule accepts the claims of a job, and why others do not."""
    found = rules.explain(principal.team.id, claims, origin=base_url(request), now=clock.now())
    return json_response({"rules": [explanation_json(one) for one in found]})


handler = lambda_handler(app)
