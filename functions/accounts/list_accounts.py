from larder.accounts import linking
from larder.web.app import better_auth_api, lambda_handler
from larder.web.principals.session import SignedIn
from larder.web.replies.accounts import AccountJson, accounts_json
from larder.web.responses import JsonResponse, json_response

app = better_auth_api()


@app.get("/api/auth/list-accounts")
def list_accounts(principal: SignedIn) -> JsonResponse[list[AccountJson]]:
    """List the ways in which the caller signs in."""
    credential, accounts = linking.list_accounts(principal.user.id)
    return json_response(accounts_json(principal.user.id, credential, accounts))


handler = lambda_handler(app)
