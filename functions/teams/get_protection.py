from larder import clock
from larder.errors import TeamNotFound
from larder.trust.scopes import use_of_shared
from larder.web.app import lambda_handler, vercel_api
from larder.web.principals.team import TeamMember
from larder.web.replies.teams import ProtectionJson, protection_json
from larder.web.responses import JsonResponse, json_response

app = vercel_api(no_route=TeamNotFound)


@app.get("/v1/teams/<id_or_slug>/protection")
def get_protection(principal: TeamMember, id_or_slug: str) -> JsonResponse[ProtectionJson]:
    """Get whether only trusted credentials write what the team reads."""
    protection = principal.team.state.protection
    use = use_of_shared(principal.team.id, protection, now=clock.now())
    return json_response(protection_json(protection, use))


handler = lambda_handler(app)
