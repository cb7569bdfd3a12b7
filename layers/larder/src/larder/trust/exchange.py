"""Exchange the id token of a CI job for a key of a team (RFC 8693).

The key is stored in one transaction with the use of the id token, the audit entry and a note in the rule, on condition
that the rule is the one that was read. So an id token gives no key more than it may, and no key outlives its rule. The
same transaction counts the key to the allowance of the team, so that a token that gives no key costs nothing of it.
"""

from datetime import datetime, timedelta

from larder.actor import Actor
from larder.api_keys import repository as keys
from larder.api_keys.keys import make_token
from larder.audit.models import Action
from larder.audit.service import audited, issued
from larder.clock import from_ms
from larder.concurrency import attempts
from larder.errors import ExchangeRefused, IdTokenSpent, TryAgain
from larder.hashing import hash_key
from larder.issuers.keys import signing_key
from larder.issuers.models import IdToken
from larder.issuers.verification import parse, verify
from larder.rate_limits.models import FAILED_EXCHANGES, Limit
from larder.rate_limits.service import counting_if_counted, refuse, take_if_counted
from larder.settings import settings
from larder.teams.models import Team
from larder.teams.teams import find_team
from larder.trust import matching, repository
from larder.trust.models import CiToken, ExchangeRequest, Match
from larder.trust.providers import PROVIDERS

PREFIX = "larder_ci_"
_HOUR_S = 3600
_SPENT_KEPT = timedelta(seconds=60)
"""How long the use of an id token is kept after its expiry. Longer than the leeway for clocks that differ."""


def exchange(asked: ExchangeRequest, *, origin: str, client: str, now: datetime) -> CiToken:
    """Exchange an id token. `origin` is the deployment's, and `client` the counted address of the caller.

    Raises ExchangeRefused, IssuerUnavailable, TooManyRequests, TryAgain.
    """
    try:
        token = parse(asked.id_token)
        verify(token, signing_key(token.issuer, token.kid, origin=origin, now=now), now=now)
        for _ in attempts():
            team = find_team(asked.team)
            if team is not None and asked.team_id not in (None, team.id):
                team = None
            rules = [] if team is None else repository.list_of(team.id)
            rules = [rule for rule in rules if rule.issuer == token.issuer]
            match = matching.choose(
                rules, token.claims, origin=origin, rule_id=asked.rule_id, now=now
            )
            # Without a team there are no rules, so nothing matches.
            if team is not None and (given := _issue(team, match, token, asked, now)):
                return given
    except ExchangeRefused:
        # Counted only now: many jobs share one address, and one of them must not stop the valid tokens of the others.
        take_if_counted(f"failed-exchanges#{client}", FAILED_EXCHANGES, now=now)
        raise
    raise TryAgain


def _issue(
    team: Team, match: Match, token: IdToken, asked: ExchangeRequest, now: datetime
) -> CiToken | None:
    """None if the rule has changed since it was read. Raises IdTokenSpent, TooManyRequests."""
    rule, uses = match.rule, PROVIDERS[match.rule.provider].uses
    # What is signed stands for a token without an id. Its signature does not: some can be written in several ways.
    token_id = match.job.token_id or token.text.rpartition(".")[0]
    token_hash = hash_key(f"{token.issuer}\n{token_id}")
    # Before the transaction: it would conflict with those of other jobs of the rule.
    if keys.is_spent(token_hash, uses=uses):
        raise IdTokenSpent
    most = Limit(most=settings().max_ci_tokens_per_hour, window_s=_HOUR_S)
    # Trusted jobs have an allowance of their own, so that pull requests cannot use it up.
    allowance = f"ci-tokens#{team.id}#{'others' if match.distrusted else 'trusted'}"
    counted = counting_if_counted(allowance, most, now=now)
    lifetime_s = rule.lifetime_s or settings().ci_token_seconds
    actions = tuple(action for action in match.actions if action == "read" or not asked.reads_only)
    key, raw = make_token(
        PREFIX,
        team_id=team.id,
        rule_id=rule.id,
        rule_version=rule.version + (match.pins is not None),
        scope=match.scope,
        run=match.job.run,
        actions=actions,
        expires_at=now + timedelta(seconds=lifetime_s),
        now=now,
    )
    ends_at = from_ms(token.claims["exp"] * 1000) + _SPENT_KEPT
    spent = keys.spending(token_hash, uses=uses, expires_at=ends_at)
    actor = Actor(key.id, rule_id=rule.id)
    entries = [
        issued(key.id, rule.id, actor, {"team": team.id, "scope": match.scope, **match.job.run})
    ]
    if match.pins is not None:
        entries.append(audited(team.id, Action.RULE_PINNED, rule.id, actor, name=rule.name))
    failed = repository.exchange(key, spent, rule, *counted, *entries, pins=match.pins, now=now)
    if spent in failed:
        raise IdTokenSpent
    if any(write in failed for write in counted):
        refuse(allowance, most, now=now)
    if failed:
        return None
    return CiToken(
        raw=raw,
        key=key,
        team=team,
        match=match,
        expires_in_s=lifetime_s,
        has_pinned=match.pins is not None,
    )
