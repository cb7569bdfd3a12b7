"""The JSON bodies of the endpoints of rules, parsed and checked."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import TypeAdapter

from larder.errors import NoValuesToUpdate
from larder.names import check_unicode
from larder.trust.models import NewRule, Others, RuleChange
from larder.web.bodies.model import BodyModel, parsed_json
from larder.web.errors import InvalidRequest
from larder.web.parameters import BearerToken
from larder.web.powertools.resolver import Depends, Request


class _Trusted(BodyModel):
    refs: list[str] | None = None
    events: list[str] | None = None
    requireProtectedRef: bool | None = None  # noqa: N815  # the names on the wire
    claims: dict[str, list[str]] | None = None
    replaceEvents: list[str] | None = None  # noqa: N815


class _NewRule(BodyModel):
    provider: str
    name: str | None = None
    issuer: str | None = None
    audience: str | None = None
    repository: str | None = None
    pinned: dict[str, str] | None = None
    trusted: _Trusted | None = None
    others: str | None = None
    scopeClaim: str | None = None  # noqa: N815
    lifetimeSeconds: int | None = None  # noqa: N815
    protect: bool = True


class _RuleChange(BodyModel):
    name: str | None = None
    trusted: _Trusted | None = None
    others: str | None = None
    lifetimeSeconds: int | None = None  # noqa: N815
    enabled: bool | None = None


class _Claims(BodyModel):
    claims: dict[str, Any]


_NEW_RULE = TypeAdapter(_NewRule)
_RULE_CHANGE = TypeAdapter(_RuleChange)
_CLAIMS = TypeAdapter(_Claims)


def _new_rule_body(_token: BearerToken, request: Request) -> _NewRule:
    return parsed_json(_NEW_RULE, request)


def new_rule(body: Annotated[_NewRule, Depends(_new_rule_body)]) -> NewRule:
    """A rule to create. Only `provider` is required, and the ids or the name of the repository."""
    return NewRule(
        provider=body.provider,
        name=body.name,
        issuer=body.issuer,
        audience=body.audience,
        repository=body.repository,
        pinned=body.pinned or {},
        others=_others(body.others),
        scope_claim=body.scopeClaim,
        lifetime_s=body.lifetimeSeconds,
        **_trusted(body.trusted),
    )


def rule_protects_team(body: Annotated[_NewRule, Depends(_new_rule_body)]) -> bool:
    """`{"protect"?}`: whether the first rule of a team protects it."""
    return body.protect


def rule_change(_token: BearerToken, request: Request) -> RuleChange:
    """The properties of a rule to change. Raises NoValuesToUpdate without one."""
    body = parsed_json(_RULE_CHANGE, request)
    change = RuleChange(
        name=body.name,
        others=_others(body.others),
        lifetime_s=body.lifetimeSeconds,
        enabled=body.enabled,
        **_trusted(body.trusted),
    )
    if change == RuleChange():
        raise NoValuesToUpdate
    return change


def sent_claims(_token: BearerToken, request: Request) -> Mapping[str, Any]:
    """`{"claims": {...}}`: the claims of an id token, never the token."""
    claims = parsed_json(_CLAIMS, request).claims
    try:
        check_unicode(claims)
    except ValueError:
        raise InvalidRequest("claims", "must be valid Unicode") from None
    return claims


def _trusted(trusted: _Trusted | None) -> dict[str, Any]:
    if trusted is None:
        return {}
    claims = trusted.claims
    return {
        "refs": None if trusted.refs is None else tuple(trusted.refs),
        "events": None if trusted.events is None else tuple(trusted.events),
        "requires_protected_ref": trusted.requireProtectedRef,
        "claims": None
        if claims is None
        else {name: tuple(values) for name, values in claims.items()},
        "replace_events": None if trusted.replaceEvents is None else tuple(trusted.replaceEvents),
    }


def _others(text: str | None) -> Others | None:
    try:
        return None if text is None else Others(text)
    except ValueError:
        raise InvalidRequest("others", f"must be one of {', '.join(Others)}") from None
