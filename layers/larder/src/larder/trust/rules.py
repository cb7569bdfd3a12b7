"""Create, change, delete and explain the rules of a team.

`by` is the member who acts, with the role that the request read, or None for the operator.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from larder.actor import RULE_ID_PREFIX, Actor
from larder.audit.models import Action
from larder.audit.service import audited
from larder.concurrency import attempts
from larder.errors import (
    InvalidValue,
    MissingRole,
    RuleExists,
    RuleLimitReached,
    RuleNotFound,
    TryAgain,
)
from larder.hashing import random_id
from larder.issuers.service import check_accepted
from larder.names import parse_name
from larder.teams import protection
from larder.teams.models import OPERATOR, RULE_ID, Member
from larder.teams.protection import FirstTrust
from larder.teams.teams import acting_in
from larder.trust import matching, repository
from larder.trust.models import (
    Claims,
    Explanation,
    NewRule,
    Others,
    Rule,
    RuleChange,
    RuleStatus,
    Trusted,
)
from larder.trust.providers import PROVIDERS, Provider

MAX_RULES = 50
"""The most rules of a team."""

MAX_CLAIMS = 10
"""The most claims that a rule names, and the most that it pins."""

MAX_VALUES = 20
"""The most values of one claim, and the most refs and events."""

MAX_TEXT = 300
"""The longest name and value of a claim."""

LEAST_LIFETIME_S = 300
MOST_LIFETIME_S = 6 * 3600
PENDING = timedelta(days=7)
"""How long a rule that names a repository waits for the first token from there."""

_NO_TRUST = FirstTrust()
DEFAULT_REFS = ("refs/heads/main",)
_TEXT = re.compile(r"[\x20-\x7e]+")
_REF = re.compile(r"refs/(?:heads|tags)/[^\s*]+\*?|refs/(?:heads|tags)/\*")
_NARROWING = ("environment", "job_workflow_ref")
"""Claims that any job of the repository can choose. They narrow a rule, and cannot be all of it."""

_OF_EVERY_TOKEN = frozenset({"iss", "aud", "exp", "iat", "nbf", "jti", "sub"})
"""Claims that Larder checks itself. `sub` can be customized in some CIs, so it decides only for generic issuers."""


def create_rule(
    team_id: str,
    new: NewRule,
    *,
    trust: FirstTrust = _NO_TRUST,
    by: Member | None,
    origin: str,
    actor: Actor | None = None,
    now: datetime,
) -> Rule:
    """Create a rule. `origin` is that of the deployment, the default audience.

    `trust` is what `teams.protection.first_trust` says of the team.

    Raises InvalidValue, RuleExists, RuleLimitReached, MissingRole, TeamNotFound, TryAgain.
    """
    rule = _made(team_id, new, origin=origin, now=now)
    rule = replace(rule, created_by=OPERATOR if by is None else by.user_id)
    check_accepted(rule.issuer, origin=origin)
    entry = audited(team_id, Action.RULE_ADDED, rule.id, actor, name=rule.name)
    for _ in attempts():
        acting = _acting(team_id, by)
        version = repository.version_of_all(team_id)
        others = repository.list_of(team_id)
        if len(others) >= MAX_RULES:
            raise RuleLimitReached(MAX_RULES)
        _check_alone(rule, others, now)
        if repository.add(
            rule, entry, protecting=trust.writes, by=acting, rules_version=version, most=MAX_RULES
        ):
            protection.confirm(trust)
            return rule
    raise TryAgain


def change_rule(
    team_id: str,
    rule_id: str,
    change: RuleChange,
    *,
    by: Member | None,
    actor: Actor | None = None,
    now: datetime,
) -> Rule:
    """Change a rule, and end its tokens.

    Raises InvalidValue, RuleExists, RuleNotFound, MissingRole, TeamNotFound, TryAgain.
    """
    for _ in attempts():
        acting = _acting(team_id, by)
        old = find_rule(team_id, rule_id)
        new = _changed(old, change, now)
        version = None
        # A new name does not need a check. It is also possible for rules that were alike before there was one.
        if new.enabled and not (old.enabled and matching.do_the_same(old, new)):
            version = repository.version_of_all(team_id)
            _check_alone(new, repository.list_of(team_id), now)
        entry = audited(team_id, Action.RULE_CHANGED, rule_id, actor, name=new.name)
        if repository.change(old, new, entry, by=acting, rules_version=version):
            return new
    raise TryAgain


def delete_rule(
    team_id: str, rule_id: str, *, by: Member | None, actor: Actor | None = None
) -> Rule:
    """Delete a rule, and end its tokens. Raises RuleNotFound, MissingRole, TeamNotFound, TryAgain."""
    for _ in attempts():
        acting = _acting(team_id, by)
        rule = find_rule(team_id, rule_id)
        entry = audited(team_id, Action.RULE_REMOVED, rule_id, actor, name=rule.name)
        if repository.delete(rule, entry, by=acting):
            return rule
    raise TryAgain


def find_rule(team_id: str, rule_id: str) -> Rule:
    """Raises RuleNotFound."""
    found = repository.find(team_id, rule_id) if RULE_ID.fullmatch(rule_id) else None
    if found is None:
        raise RuleNotFound
    return found


def list_rules(team_id: str) -> list[Rule]:
    """The rules of a team, oldest first."""
    return repository.list_of(team_id)


def rules_for_same_jobs(rule: Rule, now: datetime) -> list[Rule]:
    """The other rules that accept the jobs of this one now, so that a job has to name one of them."""
    return _for_same_jobs(rule, repository.list_of(rule.team_id), now)


def explain(team_id: str, claims: Claims, *, origin: str, now: datetime) -> list[Explanation]:
    """What each rule of the team says to these claims. Nothing is verified or stored."""
    return [
        matching.explain(rule, claims, origin=origin, now=now)
        for rule in repository.list_of(team_id)
    ]


def _acting(team_id: str, by: Member | None) -> Member | None:
    """The member with their current role. Raises MissingRole, TeamNotFound."""
    _, acting, _ = acting_in(team_id, by)
    if acting is not None and not acting.role.names_trusted:
        raise MissingRole
    return acting


def _check_alone(rule: Rule, others: Sequence[Rule], now: datetime) -> None:
    """Raises RuleExists if another rule that accepts jobs now does the same."""
    for other in _for_same_jobs(rule, others, now):
        if matching.do_the_same(rule, other):
            raise RuleExists(other.name, other.id)


def _for_same_jobs(rule: Rule, others: Sequence[Rule], now: datetime) -> list[Rule]:
    if not _gives_tokens(rule, now):
        return []
    return [
        other
        for other in others
        if other.id != rule.id
        and _gives_tokens(other, now)
        and matching.accept_same_jobs(rule, other)
    ]


def _gives_tokens(rule: Rule, now: datetime) -> bool:
    return rule.status(now) in (RuleStatus.ACTIVE, RuleStatus.PENDING)


def _made(team_id: str, new: NewRule, *, origin: str, now: datetime) -> Rule:
    provider = PROVIDERS.get(new.provider)
    if provider is None:
        raise InvalidValue("provider", f"must be one of {', '.join(PROVIDERS)}")
    issuer = new.issuer or provider.issuer
    if issuer is None:
        raise InvalidValue("issuer", f"is required for {provider.name}")
    pinned = _pinned(provider, new)
    refs = DEFAULT_REFS if new.refs is None and provider.ref else new.refs or ()
    events = provider.trusted_events if new.events is None else new.events
    protected = new.requires_protected_ref
    rule = Rule(
        id=f"{RULE_ID_PREFIX}{random_id(27)}",
        team_id=team_id,
        name=parse_name(new.name or (new.repository or provider.name).rpartition("/")[2]),
        provider=provider.name,
        issuer=issuer,
        audience=_audience(new.audience or provider.audience, origin),
        pinned=pinned,
        repository=new.repository,
        trusted=Trusted(
            refs=refs,
            events=events,
            requires_protected_ref=provider.needs_protected if protected is None else protected,
            claims=new.claims or {},
            replace_events=_replacing(new.replace_events, provider.replace_events, events),
        ),
        others=_others(provider, new),
        scope_claim=new.scope_claim,
        lifetime_s=new.lifetime_s,
        enabled=True,
        version=1,
        created_at=now,
        updated_at=now,
        pending_until=None if pinned else now + PENDING,
        last_exchange_at=None,
    )
    _check(rule)
    return rule


def _changed(old: Rule, change: RuleChange, now: datetime) -> Rule:
    trusted = old.trusted
    events = trusted.events if change.events is None else change.events
    protected = change.requires_protected_ref
    new = replace(
        old,
        name=old.name if change.name is None else parse_name(change.name),
        trusted=Trusted(
            refs=trusted.refs if change.refs is None else change.refs,
            events=events,
            requires_protected_ref=trusted.requires_protected_ref
            if protected is None
            else protected,
            claims=trusted.claims if change.claims is None else change.claims,
            replace_events=_replacing(change.replace_events, trusted.replace_events, events),
        ),
        others=old.others if change.others is None else change.others,
        lifetime_s=old.lifetime_s if change.lifetime_s is None else change.lifetime_s,
        enabled=old.enabled if change.enabled is None else change.enabled,
        version=old.version + 1,
        updated_at=now,
    )
    _check(new)
    return new


def _pinned(provider: Provider, new: NewRule) -> dict[str, str]:
    """The ids that the rule pins. Empty for a rule that waits for them."""
    pinned = dict(new.pinned)
    _check_claims("pinned", {name: (value,) for name, value in pinned.items()})
    if not provider.pins:
        if not pinned:
            raise InvalidValue("pinned", "must name a claim that identifies the jobs")
        if unfit := sorted(pinned.keys() & (_OF_EVERY_TOKEN - {"sub"})):
            raise InvalidValue("pinned", f"cannot name {unfit[0]}")
        return pinned
    whole, owner = {*provider.pins}, {*provider.pins[1:]}
    if pinned and pinned.keys() != whole and pinned.keys() != owner:
        accepted = f"{' and '.join(provider.pins)}" + (
            f", or only {' and '.join(provider.pins[1:])} for all of its repositories"
            if owner
            else ""
        )
        raise InvalidValue("pinned", f"must name {accepted}")
    if pinned:
        return pinned
    if not provider.can_pend:
        raise InvalidValue("pinned", f"must name {' and '.join(provider.pins)}")
    if not new.repository:
        raise InvalidValue("repository", "is required, or the ids in pinned")
    return {}


def _replacing(
    sent: tuple[str, ...] | None, otherwise: Sequence[str], events: Sequence[str]
) -> tuple[str, ...]:
    """The events that replace: those sent or, of those before or of the preset, the ones that are still trusted."""
    return tuple(one for one in otherwise if one in events) if sent is None else sent


def _audience(audience: str | None, origin: str) -> str | None:
    if audience is None or audience == origin:
        return None
    _check_text("audience", audience)
    if audience.startswith("https://github.com/"):
        raise InvalidValue(
            "audience",
            "cannot be GitHub's default: every service that accepts it could use its tokens here",
        )
    return audience


def _others(provider: Provider, new: NewRule) -> Others:
    tells_apart = bool(provider.scoped_by) or new.scope_claim is not None
    if new.others is None:
        return Others.SCOPE if tells_apart else Others.READ
    if new.others is Others.SCOPE and not tells_apart:
        raise InvalidValue("scope_claim", "is required to give jobs a scope of their own")
    return new.others


def _check(rule: Rule) -> None:
    """Check the parts of a rule that can change, and its texts. Raises InvalidValue."""
    provider, trusted = PROVIDERS[rule.provider], rule.trusted
    if rule.repository is not None:
        _check_text("repository", rule.repository)
    if rule.scope_claim is not None:
        _check_text("scope_claim", rule.scope_claim)
        if provider.scoped_by:
            raise InvalidValue("scope_claim", f"cannot be set for {provider.name}")
    if rule.lifetime_s is not None and not LEAST_LIFETIME_S <= rule.lifetime_s <= MOST_LIFETIME_S:
        raise InvalidValue(
            "lifetime_seconds", f"must be {LEAST_LIFETIME_S} to {MOST_LIFETIME_S} seconds"
        )
    _check_refs(provider, trusted)
    _check_events(provider, trusted.events)
    if not set(trusted.replace_events) <= set(trusted.events):
        raise InvalidValue("replace_events", "must be among events")
    _check_claims("claims", trusted.claims)
    if forbidden := sorted(trusted.claims.keys() & (_OF_EVERY_TOKEN - {"sub"})):
        raise InvalidValue("claims", f"cannot name {forbidden[0]}")
    if missing := [name for name in provider.required if name not in trusted.claims]:
        raise InvalidValue("claims", f"must name the accepted values of {missing[0]}")
    if provider.ref is None and not trusted.claims.keys() - {*_NARROWING}:
        raise InvalidValue(
            "claims", "must name the claim and the values that make a job trusted, such as a branch"
        )
    if trusted.requires_protected_ref and provider.protected is None:
        raise InvalidValue(
            "require_protected_ref", f"cannot be set: {provider.name} does not say it"
        )


def _check_refs(provider: Provider, trusted: Trusted) -> None:
    refs = trusted.refs
    if provider.ref is None:
        if refs:
            raise InvalidValue("refs", f"cannot be set for {provider.name}: use claims")
        return
    _check_values("refs", refs)
    for ref in refs:
        if not _REF.fullmatch(ref):
            raise InvalidValue("refs", "must be refs/heads/ or refs/tags/ and a name")
        if ref.endswith("*") and not trusted.requires_protected_ref:
            raise InvalidValue("refs", "can end with * only if the ref has to be protected")


def _check_events(provider: Provider, events: Sequence[str]) -> None:
    if provider.event is None:
        if events:
            raise InvalidValue("events", f"cannot be set: {provider.name} does not name events")
        return
    _check_values("events", events)
    for event in events:
        if provider.outsiders.fullmatch(event):
            raise InvalidValue(
                "events", f"cannot trust {event}: it can run code of people who cannot push"
            )


def _check_claims(field: str, claims: Mapping[str, Sequence[str]]) -> None:
    if len(claims) > MAX_CLAIMS:
        raise InvalidValue(field, f"must name at most {MAX_CLAIMS} claims")
    for name, values in claims.items():
        _check_text(field, name)
        _check_values(field, values)


def _check_values(field: str, values: Sequence[str]) -> None:
    if not 1 <= len(values) <= MAX_VALUES:
        raise InvalidValue(field, f"must have 1 to {MAX_VALUES} values")
    for value in values:
        _check_text(field, value)


def _check_text(field: str, text: str) -> None:
    if len(text) > MAX_TEXT or not _TEXT.fullmatch(text):
        raise InvalidValue(field, f"must hold texts of 1 to {MAX_TEXT} printable ASCII characters")
