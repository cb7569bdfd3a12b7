"""The last request of a sign-in: the checks of what the provider sends back, in their order.

The order matters. Nothing is asked of a provider before the request has the state of a sign-in with this very provider.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from larder.addresses import canonical, parse_address
from larder.errors import InvalidEmail, InvalidValue, IssuerUnavailable
from larder.issuers.models import InvalidIdToken, SignInRules
from larder.issuers.urls import is_loopback
from larder.issuers.verification import (
    SIGN_IN_LEEWAY_S,
    parse_sign_in,
    verify_sign_in,
    verify_userinfo,
)
from larder.names import parse_name
from larder.rate_limits.models import REFUSED_CODES
from larder.rate_limits.service import give_back_if_counted, take_if_counted
from larder.sso import repository, service
from larder.sso.keys import signing_key
from larder.sso.models import Identity, IdentityProvider, VerifiedBy
from larder.sso.refusals import Refusal, SignInRefused
from larder.sso.state import PendingSignIn, flow_of, unsealed
from larder.sso.tokens import Tokens, exchange_code, userinfo

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from larder.issuers.models import Jwk, SignInToken
    from larder.tables import Write

MOST_GROUPS = 500
MOST_GROUP_CHARACTERS = 256
_PASSED_ON = {refusal.value: refusal for refusal in (Refusal.ACCESS_DENIED, Refusal.LOGIN_REQUIRED)}
_ADDRESS = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@(?P<domain>[A-Za-z0-9.-]{1,253})")
"""Plain ASCII. Other characters may fold to those of another person's address."""


NO_COOKIE = "no_cookie"
"""The reason of a refusal: the browser has no sign-in with the state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallbackRequest:
    """The request that a provider sends the browser to.

    `parameters` are those of the query with all their values. `cookies` has the values of the cookies of sign-ins by
    the flow in their name. `session_id` is that of the browser's session. `client` is the counted address of the
    browser, and `origin` the deployment's.
    """

    provider_id: str
    parameters: Mapping[str, Sequence[str]] = field(repr=False)
    cookies: Mapping[str, Sequence[str]] = field(repr=False)
    session_id: str | None
    client: str
    origin: str

    def only(self, name: str) -> str | None:
        """The value of a parameter that the request has once."""
        values = self.parameters.get(name, ())
        return values[0] if len(values) == 1 else None


def pending_sign_in(request: CallbackRequest, *, now: datetime) -> PendingSignIn:
    """The sign-in whose state the request has. Raises SignInRefused."""
    state = request.only("state")
    if state is None:
        twice = "state" in request.parameters
        raise SignInRefused(
            Refusal.INVALID_REQUEST if twice else Refusal.STATE_NOT_FOUND,
            "parameter_twice" if twice else "state",
        )
    # Two cookies of one name count as none: a page of a sibling domain may have set one of them.
    values = request.cookies.get(flow_of(state) or "", ())
    pending = unsealed(values[0]) if len(values) == 1 else None
    if pending is None or not pending.has_state(state):
        raise SignInRefused(Refusal.STATE_MISMATCH, NO_COOKIE if pending is None else "state")
    if not pending.is_valid(now):
        raise SignInRefused(Refusal.STATE_MISMATCH, "expired")
    return pending


def identify(request: CallbackRequest, pending: PendingSignIn, *, now: datetime) -> Identity:
    """The person, after every check. Raises SignInRefused."""
    provider = _provider(request, pending)
    code = _code(request, provider)
    if pending.session_id is not None and pending.session_id != request.session_id:
        raise SignInRefused(Refusal.STATE_MISMATCH, "session")
    loopback = is_loopback(request.origin)
    tokens = _tokens(request, provider, code, pending, loopback=loopback, now=now)
    claims = _verified(provider, tokens.id_token, pending, loopback=loopback, now=now)
    authenticated_at = _authenticated_at(provider, claims, pending, now)
    has_userinfo = True
    if _lacks(provider, claims):
        try:
            more = _userinfo(provider, tokens, pending, loopback=loopback, now=now)
            claims = _completed(claims, more)
        except SignInRefused as refused:
            if refused.code is not Refusal.PROVIDER_UNAVAILABLE or not claims.get(_email(provider)):
                raise
            # Without it, the address does not count and the groups are unknown, which changes nothing.
            has_userinfo = False
    for required, values in provider.required_claims.items():
        if claims.get(required) not in values:
            raise SignInRefused(Refusal.INVALID_ID_TOKEN, "required_claim")
    groups, problem = _groups(provider, claims)
    if problem == "missing" and not has_userinfo:
        problem = "userinfo"
    email = claims.get(_email(provider))
    # What a provider says of `email` says nothing of another claim.
    verified = claims.get("email_verified") if _email(provider) == "email" else None
    return Identity(
        provider=provider,
        subject=claims["sub"],
        address=_parsed(canonical, email),
        email=_parsed(parse_address, email),
        counts=address_counts(provider, email, verified),
        name=_name(claims.get("name"), email),
        groups=groups,
        groups_problem=problem,
        authenticated_at=authenticated_at,
    )


def _tokens(
    request: CallbackRequest,
    provider: IdentityProvider,
    code: str,
    pending: PendingSignIn,
    *,
    loopback: bool,
    now: datetime,
) -> Tokens:
    """Exchange the code. One that the provider refuses ends the sign-in, and counts for the client's address.

    It counts before the provider is asked, so that parallel requests ask no more often. Raises SignInRefused,
    TooManyRequests, TryAgain.
    """
    counter = f"refused-codes#{request.client}"
    take_if_counted(counter, REFUSED_CODES, now=now)
    try:
        tokens = exchange_code(
            provider, code, pending, origin=request.origin, loopback=loopback, now=now
        )
    except SignInRefused as refused:
        if refused.code is Refusal.INVALID_CODE:
            repository.spend_state(pending.state_hash, now=now)
        else:
            give_back_if_counted(counter, REFUSED_CODES, now=now)
        raise
    give_back_if_counted(counter, REFUSED_CODES, now=now)
    return tokens


def spending(pending: PendingSignIn, provider: IdentityProvider, *, now: datetime) -> list[Write]:
    """The writes that spend the state, first, and check that the provider is the one that was read."""
    spent = repository.spending_state(pending.state_hash, now=now)
    return [spent, repository.still_as_read(provider)]


def address_counts(provider: IdentityProvider, email: object, verified: object) -> bool:
    """Whether an address from the provider proves whose account it is (docs/decisions/sso.md)."""
    match = _ADDRESS.fullmatch(email) if isinstance(email, str) else None
    if match is None or match["domain"].lower() not in provider.domains:
        return False
    # Some providers send the text.
    return provider.verified_by is VerifiedBy.DOMAIN or verified is True or verified == "true"


def _parsed(parse: Callable[[str], str], email: object) -> str | None:
    try:
        return parse(email) if isinstance(email, str) else None
    except InvalidEmail:
        return None


def _name(name: object, email: object) -> str:
    """The name, as at a sign-up, or the part of the address before the @."""
    try:
        return parse_name(name if isinstance(name, str) else "")
    except InvalidValue:
        return email.rpartition("@")[0] if isinstance(email, str) else ""


def _provider(request: CallbackRequest, pending: PendingSignIn) -> IdentityProvider:
    """The provider of the path and of the state. Raises SignInRefused."""
    if repository.is_state_spent(pending.state_hash):
        raise SignInRefused(Refusal.STATE_MISMATCH, "spent")
    provider = service.find_provider(request.provider_id)
    if provider is None:
        raise SignInRefused(Refusal.PROVIDER_NOT_FOUND)
    if (provider.id, provider.version) != (pending.provider_id, pending.provider_version):
        raise SignInRefused(Refusal.STATE_MISMATCH, "provider")
    return provider


def _code(request: CallbackRequest, provider: IdentityProvider) -> str:
    """The code in the reply. Raises SignInRefused."""
    if any(len(values) > 1 for values in request.parameters.values()):
        raise SignInRefused(Refusal.INVALID_REQUEST, "parameter_twice")
    issuer, error, code = (request.only(name) for name in ("iss", "error", "code"))
    if issuer is None and provider.endpoints.sends_issuer:
        raise SignInRefused(Refusal.ISSUER_MISSING)
    if issuer is not None and issuer != provider.issuer:
        raise SignInRefused(Refusal.ISSUER_MISMATCH)
    if error is not None:
        raise SignInRefused(_PASSED_ON.get(error, Refusal.PROVIDER_ERROR))
    if not code:
        raise SignInRefused(Refusal.NO_CODE)
    return code


def _verified(
    provider: IdentityProvider,
    id_token: str,
    pending: PendingSignIn,
    *,
    loopback: bool,
    now: datetime,
) -> Mapping[str, Any]:
    """The claims of the id token. Raises SignInRefused."""
    verify = partial(verify_sign_in, now=now)
    try:
        return _signed(provider, id_token, pending, verify, loopback=loopback, now=now)
    except IssuerUnavailable:
        raise SignInRefused(Refusal.PROVIDER_UNAVAILABLE, "keys") from None
    except InvalidIdToken as error:
        raise SignInRefused(Refusal.INVALID_ID_TOKEN, str(error)) from None


def _signed(
    provider: IdentityProvider,
    text: str,
    pending: PendingSignIn,
    verify: Callable[[SignInToken, Jwk, SignInRules], None],
    *,
    loopback: bool,
    now: datetime,
) -> Mapping[str, Any]:
    """The claims of a JSON web token of the provider. Raises InvalidIdToken, IssuerUnavailable."""
    token = parse_sign_in(text, provider.endpoints.algorithms)
    key = signing_key(provider, token.kid, loopback=loopback, now=now)
    if key is None:
        raise InvalidIdToken("kid")
    rules = SignInRules(issuer=provider.issuer, client_id=provider.client_id, nonce=pending.nonce)
    verify(token, key, rules)
    return token.claims


def _authenticated_at(
    provider: IdentityProvider, claims: Mapping[str, Any], pending: PendingSignIn, now: datetime
) -> datetime:
    """When the person last proved themselves to the provider. Raises SignInRefused.

    If a new login was asked for, the token must say that there was one: some providers ignore the question.
    """
    try:
        at = datetime.fromtimestamp(claims["auth_time"], UTC) if "auth_time" in claims else None
    except (OverflowError, ValueError, OSError):
        raise SignInRefused(Refusal.INVALID_ID_TOKEN, "auth_time") from None
    if (
        pending.asks_login
        and provider.sends_auth_time
        and (at is None or at < pending.started_at - timedelta(seconds=SIGN_IN_LEEWAY_S))
    ):
        raise SignInRefused(Refusal.REAUTHENTICATION_MISSING)
    return now if at is None else min(at, now)


def _email(provider: IdentityProvider) -> str:
    """The claim that holds the address."""
    return provider.email_claim or "email"


def _lacks(provider: IdentityProvider, claims: Mapping[str, Any]) -> bool:
    """Whether userinfo may have a claim that decides and that the id token has not."""
    decides = [_email(provider)]
    if provider.verified_by is VerifiedBy.CLAIM and provider.email_claim is None:
        decides.append("email_verified")
    is_decided = all(claims.get(name) is not None for name in decides)
    return not is_decided or provider.groups_claim not in (None, *claims)


def _userinfo(
    provider: IdentityProvider,
    tokens: Tokens,
    pending: PendingSignIn,
    *,
    loopback: bool,
    now: datetime,
) -> Mapping[str, Any]:
    """What userinfo says about the person, as JSON or signed. Raises SignInRefused."""
    found = userinfo(provider, tokens, loopback=loopback)
    if not isinstance(found, str):
        return found
    try:
        return _signed(provider, found, pending, verify_userinfo, loopback=loopback, now=now)
    except (IssuerUnavailable, InvalidIdToken):
        raise SignInRefused(Refusal.PROVIDER_UNAVAILABLE, "userinfo") from None


def _completed(claims: Mapping[str, Any], more: Mapping[str, Any]) -> Mapping[str, Any]:
    """The claims with those of userinfo that the id token lacks. Raises SignInRefused for another person's."""
    if not more:
        return claims
    if more.get("sub") != claims["sub"]:
        raise SignInRefused(Refusal.INVALID_ID_TOKEN, "sub_of_userinfo")
    email = claims.get("email")
    if email is not None and more.get("email") != email:
        # What userinfo says about another address must not verify that of the id token.
        more = {name: value for name, value in more.items() if name != "email_verified"}
    return {**more, **{name: value for name, value in claims.items() if value is not None}}


def _groups(
    provider: IdentityProvider, claims: Mapping[str, Any]
) -> tuple[tuple[str, ...] | None, str | None]:
    """The groups, or None and why there is no usable list."""
    name = provider.groups_claim
    if name is None:
        return None, None
    if name not in claims:
        # Entra ID names the claims that it leaves out because they are too long.
        left_out = claims.get("_claim_names")
        too_many = isinstance(left_out, dict) and name in left_out
        return None, "too_many" if too_many else "missing"
    found = claims[name]
    if not isinstance(found, list) or not all(isinstance(group, str) for group in found):
        return None, "not_a_list"
    if len(found) > MOST_GROUPS or any(len(group) > MOST_GROUP_CHARACTERS for group in found):
        return None, "too_many"
    return tuple(found), None
