"""Which rule accepts a job, and what the job gets."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING

from larder.api_keys.models import CACHE_ACTIONS, REPLACE
from larder.errors import ExchangeRefused
from larder.teams.models import SHARED_SCOPE
from larder.trust.models import Explanation, Match, Others, RuleStatus
from larder.trust.providers import PROVIDERS, described, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from larder.trust.models import Claims, Job, Rule

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
    job = PROVIDERS[rule.provider].job(claims)
    refused = tuple(_refusals(rule, job, origin, now))
    match = None if refused else _match(rule, job)
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


def _refusals(rule: Rule, job: Job, origin: str, now: datetime) -> Iterator[str]:
    claims, provider = job.claims, PROVIDERS[rule.provider]
    status = rule.status(now)
    if status in (RuleStatus.DISABLED, RuleStatus.EXPIRED):
        yield f"the rule is {status.value}"
    for name, wanted in (("iss", rule.issuer), ("aud", rule.audience or origin)):
        if claims.get(name) != wanted:
            yield f"{name} is {_shown(claims.get(name))}, not {wanted}"
    for name, value in provider.refused.items():
        if claims.get(name) == value:
            yield f"{name} is {value}"
    if rule.pinned:
        for name, value in rule.pinned.items():
            if claims.get(name) != value:
                yield f"{name} is {_shown(claims.get(name))}, not {value}"
        return
    if provider.repository is not None and job.repository != rule.repository:
        yield f"{provider.repository} is {_shown(job.repository)}, not {rule.repository}"
    for pin in provider.pins:
        if pin not in job.ids:
            yield f"the claim {pin} is missing"


def _match(rule: Rule, job: Job) -> Match:
    reasons = tuple(_distrusted(rule, job))
    own = _scope_of(rule, job)
    named = own[1] if own else rule.name
    scope = SHARED_SCOPE
    actions: tuple[str, ...] = CACHE_ACTIONS
    if reasons and rule.others is Others.REFUSE:
        actions = ()
    elif reasons and (rule.others is Others.READ or own is None):
        actions = ("read",)
    elif reasons and own is not None:
        scope = own[0]
    elif job.event in rule.trusted.replace_events:
        # A trusted job of this event replaces artifacts that a protected team keeps.
        actions = (*CACHE_ACTIONS, REPLACE)
    return Match(
        rule=rule,
        distrusted=reasons,
        scope=scope,
        scope_name=named,
        actions=actions,
        pins=None if rule.pinned else job.ids,
        job=job,
    )


def _distrusted(rule: Rule, job: Job) -> Iterator[str]:
    """Why the rule does not trust the job. Nothing for a trusted one."""
    provider, trusted = PROVIDERS[rule.provider], rule.trusted
    if provider.ref is not None:
        if job.ref is None:
            yield f"the claim {provider.ref} is missing"
        elif not any(_accepts(pattern, job.ref) for pattern in trusted.refs):
            yield f"{provider.ref} is {shown(job.ref)}, not {_one_of(trusted.refs)}"
    if provider.event is not None and job.event not in trusted.events:
        yield f"{provider.event} is {_shown(job.event)}, not {_one_of(trusted.events)}"
    wanted = [*trusted.claims.items()]
    if trusted.requires_protected_ref and provider.protected is not None:
        wanted.insert(0, (provider.protected, ("true",)))
    for name, values in wanted:
        value = job.claims.get(name)
        if value not in values:
            yield f"{name} is {_shown(value)}, not {_one_of(values)}"


def _scope_of(rule: Rule, job: Job) -> tuple[str, str] | None:
    """The id and the name of the own scope of a job. None if its claims do not say which it is."""
    values = job.scope or ((job.claims.get(rule.scope_claim),) if rule.scope_claim else ())
    if not values or None in values:
        return None
    repository = [job.ids.get(pin, "") for pin in PROVIDERS[rule.provider].pins]
    # With its length before it, no value can look like two.
    parts = "\0".join(
        [rule.issuer, rule.id, *(f"{len(text or '')}:{text}" for text in (*repository, *values))]
    )
    digest = base64.b32encode(hashlib.sha256(parts.encode()).digest()).decode()
    named = job.repository or rule.name
    return "c" + digest[:_SCOPE_LETTERS].lower(), shown(" ".join([named, *map(str, values)]))


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
