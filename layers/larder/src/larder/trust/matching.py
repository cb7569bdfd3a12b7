"""Which rule accepts a job, and what the job gets."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING

from larder.api_keys.models import CACHE_ACTIONS, REPLACE
from larder.errors import ExchangeRefused
from larder.teams.models import SHARED_SCOPE
from larder.trust.models import Explanation, Match, Others, RuleStatus
from larder.trust.providers import PROVIDERS, claim_text, described, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from larder.trust.models import Claims, Rule

_SCOPE_LETTERS = 26


def choose(
    rules: Sequence[Rule], claims: Claims, *, origin: str, rule_id: str | None, now: datetime
) -> Match:
    """The match of the rule that decides. `origin` is the deployment's, `rule_id` the rule that the job names.

    A rule that names the repository goes before one that names only its owner. Raises ExchangeRefused.
    """
    named = [rule for rule in rules if rule_id in (None, rule.id)]
    found = [explain(rule, claims, origin=origin, now=now) for rule in named]
    matches = [one.match for one in found if one.match is not None]
    if not matches:
        reason = f"no rule of this team accepts {described(claims)}"
        if claims.get("aud") != origin:
            # The same whether or not a rule of the team names this audience.
            reason = f"aud of subject_token is not {origin}, and {reason} with another"
        raise ExchangeRefused(reason)
    most = max(_precision(match.rule) for match in matches)
    best = [match for match in matches if _precision(match.rule) == most]
    if len(best) > 1:
        names = ", ".join(sorted(match.rule.id for match in best))
        raise ExchangeRefused(
            f"several rules accept {described(claims)}: send policy_id, one of {names}"
        )
    (match,) = best
    if not match.actions:
        raise ExchangeRefused(
            f"the rule {match.rule.name} gives a token to trusted jobs only: {match.distrusted[0]}"
        )
    return match


def explain(rule: Rule, claims: Claims, *, origin: str, now: datetime) -> Explanation:
    """Why the rule accepts the claims or not. Does not check the signature and the times of a token."""
    refused = tuple(_refusals(rule, claims, origin, now))
    match = None if refused else _match(rule, claims)
    return Explanation(rule=rule, refused=refused, match=match)


def accept_same_jobs(one: Rule, other: Rule) -> bool:
    """Whether two rules accept the same jobs, so that a job has to name one of them.

    A pending rule has no ids yet. It is for the same repository as a rule with the same name of the repository.
    """
    if (one.issuer, one.audience, _precision(one)) != (
        other.issuer,
        other.audience,
        _precision(other),
    ):
        return False
    if one.pinned and other.pinned:
        return one.pinned == other.pinned
    return one.repository == other.repository


def do_the_same(one: Rule, other: Rule) -> bool:
    """Whether no job has a reason to name one of the two rules and not the other."""
    return accept_same_jobs(one, other) and _grants(one) == _grants(other)


def distrusted(rule: Rule, claims: Claims) -> Iterator[str]:
    """Why the rule does not trust the job. Nothing for a trusted one."""
    provider, trusted = PROVIDERS[rule.provider], rule.trusted
    if provider.ref is not None:
        ref = provider.ref_of(claims)
        if ref is None:
            yield f"the claim {provider.ref} is missing"
        elif not any(_accepts(pattern, ref) for pattern in trusted.refs):
            yield f"{provider.ref} is {shown(ref)}, not {_one_of(trusted.refs)}"
    if provider.event is not None:
        event = claim_text(claims, provider.event)
        if event not in trusted.events:
            yield f"{provider.event} is {_shown(event)}, not {_one_of(trusted.events)}"
    if trusted.requires_protected_ref and provider.protected is not None:
        value = claim_text(claims, provider.protected)
        if value != "true":
            yield f"{provider.protected} is {_shown(value)}, not true"
    for name, values in trusted.claims.items():
        value = claim_text(claims, name)
        if value not in values:
            yield f"{name} is {_shown(value)}, not {_one_of(values)}"


def scope_of(rule: Rule, claims: Claims) -> tuple[str, str] | None:
    """The id and the name of the own scope of a job. None if its claims do not say which it is."""
    provider = PROVIDERS[rule.provider]
    names = provider.scope_claims(claims) or ((rule.scope_claim,) if rule.scope_claim else ())
    values = [claim_text(claims, name) for name in names]
    if not values or None in values:
        return None
    repository = [claim_text(claims, pin) or "" for pin in provider.pins]
    # With its length before it, no value can look like two.
    parts = "\0".join(
        [rule.issuer, rule.id, *(f"{len(text or '')}:{text}" for text in (*repository, *values))]
    )
    digest = base64.b32encode(hashlib.sha256(parts.encode()).digest()).decode()
    named = (provider.repository and claim_text(claims, provider.repository)) or rule.name
    return "c" + digest[:_SCOPE_LETTERS].lower(), shown(" ".join([named, *map(str, values)]))


def run_of(rule: Rule, claims: Claims) -> dict[str, str]:
    """What describes the job in the audit log: repository, ref, event, commit, page."""
    provider = PROVIDERS[rule.provider]
    wanted: Mapping[str, str | None] = {
        "repository": provider.repository or next(iter(provider.pins), None),
        "ref": provider.ref,
        "event": provider.event,
        **provider.run,
        "token": provider.token_id,
    }
    run = {
        label: shown(text)
        for label, claim in wanted.items()
        if claim is not None and (text := claim_text(claims, claim)) is not None
    }
    if provider.run_url is not None and rule.issuer == provider.issuer:
        try:
            run["url"] = shown(provider.run_url.format_map(claims))
        except KeyError:
            # A claim is missing, so there is no page to name.
            return run
    return run


def _refusals(rule: Rule, claims: Claims, origin: str, now: datetime) -> Iterator[str]:
    status = rule.status(now)
    if status in (RuleStatus.DISABLED, RuleStatus.EXPIRED):
        yield f"the rule is {status.value}"
    if claims.get("iss") != rule.issuer:
        yield f"iss is {_shown(claim_text(claims, 'iss'))}, not {rule.issuer}"
    audience = rule.audience or origin
    if claims.get("aud") != audience:
        yield f"aud is {_shown(claim_text(claims, 'aud'))}, not {audience}"
    provider = PROVIDERS[rule.provider]
    for name, value in provider.refused.items():
        if claim_text(claims, name) == value:
            yield f"{name} is {value}"
    if rule.pinned:
        for name, value in rule.pinned.items():
            if claim_text(claims, name) != value:
                yield f"{name} is {_shown(claim_text(claims, name))}, not {value}"
        return
    if provider.repository is not None:
        repository = claim_text(claims, provider.repository)
        if repository != rule.repository:
            yield f"{provider.repository} is {_shown(repository)}, not {rule.repository}"
    for pin in provider.pins:
        if not claim_text(claims, pin):
            yield f"the claim {pin} is missing"


def _match(rule: Rule, claims: Claims) -> Match:
    reasons = tuple(distrusted(rule, claims))
    own = scope_of(rule, claims)
    named = own[1] if own else rule.name
    scope = SHARED_SCOPE
    actions: tuple[str, ...] = CACHE_ACTIONS
    if reasons and rule.others is Others.REFUSE:
        actions = ()
    elif reasons and (rule.others is Others.READ or own is None):
        actions = ("read",)
    elif reasons and own is not None:
        scope = own[0]
    elif _replaces(rule, claims):
        actions = (*CACHE_ACTIONS, REPLACE)
    pins = None
    if not rule.pinned:
        pins = {pin: str(claim_text(claims, pin)) for pin in PROVIDERS[rule.provider].pins}
    return Match(
        rule=rule,
        distrusted=reasons,
        scope=scope,
        scope_name=named,
        actions=actions,
        pins=pins,
    )


def _replaces(rule: Rule, claims: Claims) -> bool:
    """Whether the job, if it is trusted, replaces artifacts that a protected team keeps."""
    event = PROVIDERS[rule.provider].event
    return event is not None and claim_text(claims, event) in rule.trusted.replace_events


def _grants(rule: Rule) -> tuple[object, ...]:
    """What decides which token a job gets. The order of values does not matter."""
    trusted = rule.trusted
    return (
        rule.provider,
        {*trusted.refs},
        {*trusted.events},
        {*trusted.replace_events},
        trusted.requires_protected_ref,
        {name: {*values} for name, values in trusted.claims.items()},
        rule.others,
        rule.scope_claim,
        rule.lifetime_s,
    )


def _precision(rule: Rule) -> int:
    """How closely the rule names the repository. A rule for all repositories of an owner has 0."""
    pins = PROVIDERS[rule.provider].pins
    if not pins:
        return len(rule.pinned)
    return 0 if rule.pinned and pins[0] not in rule.pinned else 1


def _accepts(pattern: str, ref: str) -> bool:
    """A `*` at the end of a pattern stands for any text. Everything else compares exactly."""
    if pattern.endswith("*"):
        return ref.startswith(pattern[:-1])
    return ref == pattern


def _one_of(values: Sequence[str]) -> str:
    return " or ".join(values) or "any value, because the rule names none"


def _shown(text: str | None) -> str:
    return "missing" if text is None else shown(text)
