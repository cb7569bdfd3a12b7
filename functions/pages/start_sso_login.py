"""GET /api/auth/sso"""

from larder.web.app import auth_api, lambda_handler
from larder.web.responses import PageRedirect, sent_on
from larder.web.turbo_login.parameters import SsoPage

app = auth_api()


@app.get("/api/auth/sso")
def start_sso_login(page: SsoPage) -> PageRedirect:
    """GET /api/auth/sso: redirect to the page that asks for consent, for one team."""
    return sent_on(page)


handler = lambda_handler(app)
