"""Types of rules and exchanges."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from larder.api_keys.models import ApiKey
from larder.records import Name
from larder.teams.models import Team

Claims = Mapping[str, Any]
"""The claims of an id token."""


class Others(StrEnum):
    """What a job gets that a rule accepts and does not trust."""

    SCOPE = "scope"
    """A token that writes a cache of its own, for its repository and ref. Without a ref, it only reads."""
    READ = "read"
    """A token that only reads."""
    REFUSE = "refuse"
    """No token."""


class RuleStatus(StrEnum):
    ACTIVE = "active"
    PENDING = "pending"
    """It names the repository, and the first token from there fixes the ids that never change."""
    EXPIRED = "expired"
    """No token came while it was pending. It accepts none now."""
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trusted:
    """Which jobs of the repository are trusted. A job must meet all of it, and a missing claim meets nothing.

    `refs` and `events` are the accepted values. With `requires_protected_ref`, the CI must say that the ref is
    protected. `claims` has the accepted values of more claims.

    A trusted job of one of `replace_events`, which are among the events, also replaces artifacts that a protected team
    keeps.
    """

    refs: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    requires_protected_ref: Annotated[bool, Name(json="requireProtectedRef")] = False
    claims: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    replace_events: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule of a team.

    `pinned` are the claims that identify the repository or its owner, and are empty while the rule is pending.
    `repository` is its name, for pending rules and for people. `audience` is None for the deployment's origin,
    `lifetime_s` for the deployment's option. `scope_claim` names the claim by which the own scopes of a provider
    without a ref differ. Each change raises `version` and ends the rule's tokens. `created_by` is the id of the user
    who added it, OPERATOR for the operator, and None for a rule from before this was stored.
    """

    id: str
    team_id: str
    name: str
    provider: str
    issuer: str
    audience: str | None
    pinned: Mapping[str, str]
    repository: str | None
    trusted: Trusted
    others: Others
    scope_claim: str | None
    lifetime_s: int | None
    enabled: bool
    version: int
    created_at: datetime
    updated_at: datetime
    pending_until: datetime | None
    last_exchange_at: datetime | None
    created_by: str | None = None

    def status(self, now: datetime) -> RuleStatus:
        if not self.enabled:
            return RuleStatus.DISABLED
        if self.pending_until is None:
            return RuleStatus.ACTIVE
        return RuleStatus.PENDING if now < self.pending_until else RuleStatus.EXPIRED


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleTerms:
    """What a request says of a rule, new or not."""

    name: str | None = None
    refs: tuple[str, ...] | None = None
    events: tuple[str, ...] | None = None
    requires_protected_ref: bool | None = None
    claims: Mapping[str, tuple[str, ...]] | None = None
    replace_events: tuple[str, ...] | None = None
    others: Others | None = None
    lifetime_s: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRule(RuleTerms):
    """A rule to create. None stands for what the provider's preset says."""

    provider: str
    issuer: str | None = None
    audience: str | None = None
    repository: str | None = None
    pinned: Mapping[str, str] = field(default_factory=dict)
    scope_claim: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleChange(RuleTerms):
    """Changes to a rule. None leaves a property as it is. The repository and the issuer never change."""

    enabled: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A CI job as the claims of its provider describe it. None for what they do not say.

    `claims` are those that are texts, numbers or truth values, as text. `ids` are those of the repository and its
    owner, by claim. Own scopes differ by the values of `scope`; there are none if the provider has no claims for that.
    `run` describes the job in the audit log: repository, ref, event, commit, page. `token_id` identifies the id token.
    """

    claims: Mapping[str, str]
    repository: str | None
    ids: Mapping[str, str]
    ref: str | None
    event: str | None
    scope: tuple[str | None, ...]
    run: Mapping[str, str]
    token_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """What a rule says to the claims of a job that it accepts.

    `distrusted` has the reasons why the job is not trusted, and is empty for a trusted one. `scope` is where the token
    writes: `shared`, or the id of an own scope. `scope_name` is its name for people. `actions` are those of the token
    with artifacts, none if the rule refuses the job. `pins` are the ids that a pending rule is fixed to.
    """

    rule: Rule
    distrusted: tuple[str, ...]
    scope: str
    scope_name: str
    actions: tuple[str, ...]
    pins: Mapping[str, str] | None
    job: Job


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a rule accepts the claims or not. `refused` has the reasons, and is empty if `match` is set."""

    rule: Rule
    refused: tuple[str, ...]
    match: Match | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeRequest:
    """What a job asks for. `team` is an id or a slug, and `rule_id` chooses between rules that match alike.

    With `team_id`, a slug that leads to another team is refused.
    """

    team: str
    id_token: str
    team_id: str | None = None
    rule_id: str | None = None
    reads_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CiToken:
    """A token for a job. `raw` is the only copy of the secret."""

    raw: str
    key: ApiKey
    team: Team
    match: Match
    expires_in_s: int
    has_pinned: bool
