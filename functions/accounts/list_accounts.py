"""GET /api/auth/list-accounts"""

from larder.accounts.service import list_credentials
from larder.web.app import auth_api, lambda_handler
from larder.web.callers.session import SignedIn
from larder.web.replies.accounts import AccountJson, accounts_json
from larder.web.responses import JsonResponse, json_response

app = auth_api()


@app.get("/api/auth/list-accounts")
def list_accounts(caller: SignedIn) -> JsonResponse[list[AccountJson]]:
    """GET /api/auth/list-accounts: the ways in which the caller signs in."""
    found = list_credentials(caller.user.id)
    return json_response(accounts_json(caller.user.id, found))


handler = lambda_handler(app)
