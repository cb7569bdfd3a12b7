from larder import clock
from larder.accounts import team_invitations
from larder.web.app import lambda_handler, vercel_api
from larder.web.bodies.teams import PreviewedToken
from larder.web.replies.invitations import InvitationPreviewJson, preview_json
from larder.web.responses import JsonResponse, json_response

app = vercel_api()


@app.post("/v1/teams/invitation")
def preview_invitation(token: PreviewedToken) -> JsonResponse[InvitationPreviewJson]:
    """Get the team and the role of an invitation, with the token from its email."""
    return json_response(preview_json(team_invitations.preview_invitation(token, now=clock.now())))


handler = lambda_handler(app)
