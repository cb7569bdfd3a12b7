"""GET /api/auth/list-accounts"""

from aws_lambda_powertools.event_handler import Response

from larder.accounts.service import list_credentials
from larder.web.account_json import accounts_json
from larder.web.app import auth_api, lambda_handler
from larder.web.responses import json_response
from larder.web.signed_in import SignedIn

app = auth_api()


@app.get("/api/auth/list-accounts")
def list_accounts(caller: SignedIn) -> Response[str]:
    """GET /api/auth/list-accounts: how the caller signs in, without the hash of their password."""
    found = list_credentials(caller.user.id)
    return json_response(accounts_json(caller.user.id, found))


handler = lambda_handler(app)
