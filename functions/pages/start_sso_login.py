from typing import Annotated

from larder.web.app import better_auth_api, lambda_handler
from larder.web.powertools.resolver import Depends
from larder.web.responses import PageRedirect, sent_on
from larder.web.turbo_login.parameters import sso_page

app = better_auth_api()


@app.get("/api/auth/sso")
def start_sso_login(page: Annotated[str, Depends(sso_page)]) -> PageRedirect:
    """Redirect to the consent page for one team."""
    return sent_on(page)


handler = lambda_handler(app)
