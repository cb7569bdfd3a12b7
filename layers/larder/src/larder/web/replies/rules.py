"""Rules and the tokens of CI jobs in replies."""

from datetime import datetime
from typing import Literal, TypedDict

from larder.clock import Milliseconds
from larder.records import shaped
from larder.teams.models import Role
from larder.trust.makers import Maker, Makers
from larder.trust.models import CiToken, Explanation, Others, Rule, RuleStatus


class TrustedJson(TypedDict):
    """Which jobs are trusted. A job must meet all of it.

    Trusted jobs of `replaceEvents` also replace artifacts that a protected team keeps.
    """

    refs: list[str]
    events: list[str]
    requireProtectedRef: bool
    claims: dict[str, list[str]]
    replaceEvents: list[str]


class MakerJson(TypedDict):
    """Who added the rule. All are null for the operator.

    `email` is null for a deleted user, and `role` for one who has left the team.
    """

    uid: str | None
    email: str | None
    role: Role | None


class RuleJson(TypedDict):
    """A rule. `pinned` is empty while it waits for the first token of `repository`, until `pendingUntil`.

    `audience` is null for the address of this service, and `lifetimeSeconds` for the option of the deployment.
    `createdBy` is null if it is not known: the rule was added before it was stored.
    """

    id: str
    name: str
    provider: str
    issuer: str
    audience: str | None
    repository: str | None
    pinned: dict[str, str]
    state: RuleStatus
    pendingUntil: Milliseconds | None
    trusted: TrustedJson
    others: Others
    scopeClaim: str | None
    lifetimeSeconds: int | None
    enabled: bool
    version: int
    createdBy: MakerJson | None
    createdAt: Milliseconds
    updatedAt: Milliseconds
    lastExchangeAt: Milliseconds | None


class ProtectingRuleJson(RuleJson):
    """The first rule of its team, which has protected the team."""

    teamProtected: Literal[True]


class RulesJson(TypedDict):
    """The rules of the team, oldest first."""

    rules: list[RuleJson]


class RemovedRuleJson(TypedDict):
    id: str


class ExplanationJson(TypedDict):
    """What a rule says to the claims. `refused` and `notTrusted` have the reasons.

    A job that is not refused and not trusted gets what `others` of the rule says. `cacheScope` is null for a job that
    gets no token.
    """

    rule: str
    name: str
    accepted: bool
    refused: list[str]
    trusted: bool
    notTrusted: list[str]
    permissions: list[str]
    cacheScope: str | None


class ExplanationsJson(TypedDict):
    rules: list[ExplanationJson]


class IssuedToJson(TypedDict):
    """The team and the rule of the token. `cacheScope` is `shared` for a token that writes what everyone reads."""

    team: str
    rule: str
    cacheScope: str
    name: str


class CiTokenJson(TypedDict):
    """A token for a job (RFC 8693). `scope` lists its permissions, and `expires_in` is in seconds."""

    access_token: str
    issued_token_type: str
    token_type: str
    expires_in: int
    scope: str
    larder: IssuedToJson


def rule_json(rule: Rule, makers: Makers, now: datetime) -> RuleJson:
    return shaped(
        RuleJson,
        rule,
        state=rule.status(now),
        trusted=shaped(TrustedJson, rule.trusted),
        lifetimeSeconds=rule.lifetime_s,
        createdBy=_maker_json(makers.get(rule.created_by or "")),
    )


def created_rule_json(
    rule: Rule, makers: Makers, now: datetime, *, protects_team: bool
) -> RuleJson | ProtectingRuleJson:
    if protects_team:
        return {**rule_json(rule, makers, now), "teamProtected": True}
    return rule_json(rule, makers, now)


def _maker_json(maker: Maker | None) -> MakerJson | None:
    if maker is None:
        return None
    return {"uid": maker.user_id, "email": maker.email, "role": maker.role}


def explanation_json(explanation: Explanation) -> ExplanationJson:
    match = explanation.match
    return {
        "rule": explanation.rule.id,
        "name": explanation.rule.name,
        "accepted": match is not None and bool(match.actions),
        "refused": list(explanation.refused),
        "trusted": match is not None and not match.distrusted,
        "notTrusted": [] if match is None else list(match.distrusted),
        "permissions": [] if match is None else [f"artifacts:{action}" for action in match.actions],
        "cacheScope": match.scope if match is not None and match.actions else None,
    }


def ci_token_json(token: CiToken, token_type: str) -> CiTokenJson:
    return {
        "access_token": token.raw,
        "issued_token_type": token_type,
        "token_type": "Bearer",
        "expires_in": token.expires_in_s,
        "scope": " ".join(f"artifacts:{action}" for action in token.key.permissions["artifacts"]),
        "larder": {
            "team": token.team.slug,
            "rule": token.match.rule.id,
            "cacheScope": token.match.scope,
            "name": token.match.scope_name,
        },
    }
