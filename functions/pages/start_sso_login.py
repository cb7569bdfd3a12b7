"""GET /api/auth/sso"""

from aws_lambda_powertools.event_handler import Response

from larder.web.app import auth_api, lambda_handler
from larder.web.login_parameters import SsoPage
from larder.web.responses import sent_on

app = auth_api()


@app.get("/api/auth/sso")
def start_sso_login(page: SsoPage) -> Response[None]:
    """GET /api/auth/sso: redirect to the page that asks for consent, for one team."""
    return sent_on(page)


handler = lambda_handler(app)
