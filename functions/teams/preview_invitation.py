from typing import Annotated

from larder import clock
from larder.accounts import team_invitations
from larder.web.app import lambda_handler, vercel_api
from larder.web.bodies.teams import previewed_token
from larder.web.powertools.resolver import Depends
from larder.web.replies.invitations import InvitationPreviewJson, preview_json
from larder.web.responses import JsonResponse, json_response

app = vercel_api()


@app.post("/v1/teams/invitation")
def preview_invitation(
    token: Annotated[str, Depends(previewed_token)],
) -> JsonResponse[InvitationPreviewJson]:
    """Get the team and the role of an invitation, with the token from its email."""
    return json_response(preview_json(team_invitations.preview_invitation(token, now=clock.now())))


handler = lambda_handler(app)
