from typing import Annotated, Literal, TypedDict

from larder import clock
from larder.accounts import email_links
from larder.errors import AddressIsLinked, InvalidVerificationToken, ProviderRequired
from larder.web.app import better_auth_api, lambda_handler
from larder.web.audit_log import audit
from larder.web.mail_context import RequestMailContext
from larder.web.powertools.resolver import Depends
from larder.web.principals.session import MaybeSignedInInPerson
from larder.web.queries.links import VERIFIED_PAGE, FollowedLink, verification_link
from larder.web.replies.errors import code_of
from larder.web.responses import JsonResponse, PageRedirect, json_response, sent_on

app = better_auth_api()


class VerifiedEmailJson(TypedDict):
    status: Literal[True]
    user: None


@app.get("/api/auth/verify-email")
def verify_email(
    link: Annotated[FollowedLink, Depends(verification_link)],
    principal: MaybeSignedInInPerson,
    mail_context: RequestMailContext,
) -> JsonResponse[VerifiedEmailJson] | PageRedirect:
    """Verify an address by the token of a link. Redirects to `callbackURL`.

    The link to the old address of a user who changes it redirects to a page, which asks to confirm the change.
    """
    try:
        by = principal.user if principal else None
        user = email_links.follow_verification_token(
            link.token, mail_context, by=by, now=clock.now()
        )
    except InvalidVerificationToken:
        if not link.callback_url:
            raise
        return sent_on(link.callback_url, error="invalid_token")
    except (ProviderRequired, AddressIsLinked) as refused:
        if not link.callback_url:
            raise
        return sent_on(link.callback_url, error=code_of(refused).lower())
    if user is None:
        return sent_on(VERIFIED_PAGE, confirm=link.token)
    audit("email_link_used", None, owner=user.id, subject=user.id)
    if link.callback_url:
        return sent_on(link.callback_url)
    return json_response({"status": True, "user": None})


handler = lambda_handler(app)
