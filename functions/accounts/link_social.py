from typing import Annotated

from larder import clock
from larder.accounts.provider_start import ProviderStart, start_sign_in
from larder.web.app import better_auth_api, lambda_handler
from larder.web.bodies.accounts import social_body
from larder.web.powertools.resolver import Depends, Request
from larder.web.principals.session import SignedInLately
from larder.web.replies.provider_sign_in import StartedSignInJson, started_response
from larder.web.request_context import base_url
from larder.web.responses import MAY_SET_COOKIES, JsonResponse, MayHave

app = better_auth_api()


@app.post("/api/auth/link-social")
def link_social(
    principal: SignedInLately,
    wanted: Annotated[ProviderStart, Depends(social_body)],
    request: Request,
) -> Annotated[JsonResponse[StartedSignInJson], MayHave("Location"), MAY_SET_COOKIES]:
    """Begin to link the caller's account at a provider, so that it can sign in."""
    started = start_sign_in(
        wanted, session_id=principal.session.id, origin=base_url(request), now=clock.now()
    )
    return started_response(started, request, redirects=wanted.redirects)


handler = lambda_handler(app)
