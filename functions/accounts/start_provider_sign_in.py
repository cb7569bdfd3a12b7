from typing import Annotated

from larder import clock
from larder.accounts.provider_start import ProviderStart, start_sign_in
from larder.web.app import better_auth_api, lambda_handler
from larder.web.bodies.accounts import social_body, sso_body
from larder.web.powertools.resolver import Depends, Request
from larder.web.replies.provider_sign_in import StartedSignInJson, started_response
from larder.web.request_context import base_url
from larder.web.responses import MAY_SET_COOKIES, JsonResponse, MayHave

app = better_auth_api()

Started = Annotated[JsonResponse[StartedSignInJson], MayHave("Location"), MAY_SET_COOKIES]


@app.post("/api/auth/sign-in/social")
def start_provider_sign_in(
    wanted: Annotated[ProviderStart, Depends(social_body)], request: Request
) -> Started:
    """Begin a sign-in with a provider. The client goes on to the `url` of the reply."""
    return _started(wanted, request)


@app.post("/api/auth/sign-in/sso")
def start_sso_sign_in(
    wanted: Annotated[ProviderStart, Depends(sso_body)], request: Request
) -> Started:
    """Begin a sign-in with the provider of an address, a domain or a team."""
    return _started(wanted, request)


def _started(wanted: ProviderStart, request: Request) -> JsonResponse[StartedSignInJson]:
    started = start_sign_in(wanted, origin=base_url(request), now=clock.now())
    return started_response(started, request, redirects=wanted.redirects)


handler = lambda_handler(app)
