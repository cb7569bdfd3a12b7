from typing import Annotated

from larder import clock
from larder.accounts import provider_sign_in
from larder.actor import Actor, by_provider
from larder.sso.callback import NO_COOKIE, CallbackRequest
from larder.sso.refusals import SignInRefused
from larder.web.app import better_auth_api, lambda_handler
from larder.web.audit_log import audit, log_refusal
from larder.web.log import logger
from larder.web.mail_context import RequestMailContext
from larder.web.powertools.resolver import Depends, Request
from larder.web.principals.session import MaybeSignedInInPerson
from larder.web.queries.callback import callback_request
from larder.web.replies.provider_sign_in import finished_redirect, refused_redirect
from larder.web.responses import MAY_SET_COOKIES, PageRedirect, sent_on

app = better_auth_api()


@app.get("/api/auth/callback/<provider_id>")
def finish_provider_sign_in(
    provider_id: str,
    sent: Annotated[CallbackRequest, Depends(callback_request)],
    principal: MaybeSignedInInPerson,
    mail_context: RequestMailContext,
    request: Request,
) -> Annotated[PageRedirect, MAY_SET_COOKIES]:
    """Finish a sign-in with a provider. Redirects with a session, or with `?error=`."""
    user = principal.user if principal else None
    try:
        done = provider_sign_in.finish(sent, mail_context, user=user, now=clock.now())
    except SignInRefused as refused:
        log_refusal(refused)
        if principal and refused.reason == NO_COOKIE:
            # The back button, after the sign-in: its cookie is gone, and the session is there.
            return sent_on("/console")
        return refused_redirect(refused, request)
    if done.identity.groups_problem is not None:
        logger().append_keys(groups_problem=done.identity.groups_problem)
    if done.session is not None:
        logger().append_keys(user_id=done.user.id, session_id=done.session.id)
        actor = Actor(by_provider(done.identity.provider.id), done.user.id)
        audit("signed_in", actor, owner=done.user.id, subject=done.session.id)
    return finished_redirect(done, request)


handler = lambda_handler(app)
