"""The request that a provider sends the browser to, at the end of a sign-in."""

from urllib.parse import parse_qs

from larder.sso.callback import CallbackRequest
from larder.web.client_address import counted_address
from larder.web.declared import text
from larder.web.powertools.resolver import Request
from larder.web.principals.session import MaybeSignedInInPerson
from larder.web.request_context import base_url
from larder.web.state_cookies import sent_states

MOST_PARAMETERS = 50

CODE = text("code", "The code of the provider.")
STATE = text("state", "The state of the sign-in, as the provider got it.")
ISSUER = text("iss", "The issuer (RFC 9207).")
ERROR = text("error", "Why the provider sends no code.")


def callback_request(request: Request, principal: MaybeSignedInInPerson) -> CallbackRequest:
    """The query with all values, because the gateway joins those of a parameter that comes twice."""
    raw = request.resolved_event.get("rawQueryString") or ""
    try:
        sent = parse_qs(raw, keep_blank_values=True, max_num_fields=MOST_PARAMETERS)
    except ValueError:
        sent = {}
    declared = {parameter.name for parameter in (CODE, STATE, ISSUER, ERROR)}
    return CallbackRequest(
        provider_id=request.path_parameters["provider_id"],
        parameters={name: values for name, values in sent.items() if name in declared},
        cookies=sent_states(request),
        session_id=principal.session.id if principal else None,
        client=counted_address(request),
        origin=base_url(request),
    )
