from typing import Annotated
from urllib.parse import urlencode

from larder import clock
from larder.accounts import password_resets
from larder.errors import InvalidLinkToken
from larder.web.app import better_auth_api, lambda_handler
from larder.web.powertools.resolver import Depends
from larder.web.queries.links import PasswordPage, reset_page
from larder.web.responses import PageRedirect, sent_on

app = better_auth_api()


@app.get("/api/auth/reset-password/<token>")
def follow_reset_link(
    token: str, page: Annotated[PasswordPage, Depends(reset_page)]
) -> PageRedirect:
    """Redirect to the page for the new password, with the token or `?error=`."""
    try:
        address = password_resets.check_reset_token(token, now=clock.now())
    except InvalidLinkToken:
        return sent_on(page.url, error="INVALID_TOKEN")
    # After `#`, so that no request and no log has it. Password managers need it to store the new password.
    fragment = f"#{urlencode({'email': address})}" if page.is_ours and address else ""
    return sent_on(page.url + fragment, token=token)


handler = lambda_handler(app)
