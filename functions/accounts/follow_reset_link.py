"""GET /api/auth/reset-password/{token}"""

from larder import clock
from larder.accounts import links
from larder.errors import InvalidLinkToken
from larder.web.app import better_auth_api, lambda_handler
from larder.web.bodies.credentials import ResetPage
from larder.web.responses import PageRedirect, sent_on

app = better_auth_api()


@app.get("/api/auth/reset-password/<token>")
def follow_reset_link(token: str, page: ResetPage) -> PageRedirect:
    """GET /api/auth/reset-password/{token}: redirect to the page for the new password, with the token or `?error=`."""
    try:
        links.check_reset_token(token, now=clock.now())
    except InvalidLinkToken:
        return sent_on(page, error="INVALID_TOKEN")
    return sent_on(page, token=token)


handler = lambda_handler(app)
