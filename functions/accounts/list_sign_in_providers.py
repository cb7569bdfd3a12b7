from typing import TypedDict

from larder.accounts.provider_start import Passwords, sign_in_choices
from larder.web.app import better_auth_api, lambda_handler
from larder.web.responses import JsonResponse, json_response

app = better_auth_api()

CACHED = {"Cache-Control": "public, max-age=60"}


class ProviderJson(TypedDict):
    id: str
    name: str


class SignInProvidersJson(TypedDict):
    """`passwords` says whether users sign in with one: all, only some, or none.

    `asksAddress` says that a page begins with the address, and sends it to `/sign-in/sso`.
    """

    providers: list[ProviderJson]
    passwords: Passwords
    asksAddress: bool


@app.get("/api/auth/sign-in/providers")
def list_sign_in_providers() -> JsonResponse[SignInProvidersJson]:
    """List the providers that users can sign in with, for the sign-in page."""
    choices = sign_in_choices()
    return json_response(
        {
            "providers": [
                {"id": provider.id, "name": provider.name} for provider in choices.providers
            ],
            "passwords": choices.passwords,
            "asksAddress": choices.asks_address,
        },
        headers=CACHED,
    )


handler = lambda_handler(app)
