"""Who makes a request. It is here because keys are made and changed on behalf of a principal."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from larder.actor import Actor
from larder.api_keys.models import ARTIFACT_ACTIONS, REPLACE, ApiKey, scope_of_user
from larder.api_keys.validity import (
    ended_with_membership,
    ended_with_rule,
    ended_with_team,
    ended_with_user,
)
from larder.errors import NotATeamMember, Unauthenticated
from larder.teams.models import Membership, TeamMembership

if TYPE_CHECKING:
    # Builds use keys, and start faster without the account modules.
    from larder.accounts.models import Session, User


def own_scope(user_id: str, key: ApiKey | None) -> str | None:
    """The `Principal.own_scope` of this user and key. `key` is None for a session."""
    if key is None:
        return scope_of_user(user_id)
    return None if key.is_trusted else key.own_scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """The authenticated caller: a user, a team's own key, or a CI job with a token from a rule.

    `user` is set if the request has read the user: always with a session, and with a key only under `/api/auth`.
    """

    credential: "ApiKey | Session"
    user: "User | None" = None

    @property
    def user_id(self) -> str:
        """Raises Unauthenticated for a team's own key and for a CI job, which have no user."""
        return self.credential.user_id

    @property
    def holder_id(self) -> str:
        """The user, the team for its own key or, for a CI job, the rule."""
        return self.credential.user_id if self.key is None else self.key.holder_id

    @property
    def key(self) -> ApiKey | None:
        return self.credential if isinstance(self.credential, ApiKey) else None

    @property
    def is_operator(self) -> bool:
        """False with a key: keys are in the environment of builds, so they never get an operator's rights."""
        if self.user is None or self.key is not None:
            return False
        from larder.accounts.service import is_operator

        return is_operator(self.user)

    @property
    def is_public(self) -> bool:
        """Whether it is a public read key, which strangers have."""
        return self.key is not None and self.key.daily is not None

    @property
    def is_ci_job(self) -> bool:
        """Whether the key is the token that a rule gave to a job. It has no user, and no role in the team."""
        return self.key is not None and self.key.rule_id is not None

    @property
    def person_id(self) -> str | None:
        """The user, None for a team's own key and for a CI job."""
        return self.user_id if self.key is None or self.key.has_user else None

    @property
    def bound_to(self) -> str | None:
        """The id of the only team that the key works for. None for a session and for a key without a team."""
        return self.key.team_id if self.key else None

    def check_not_ended(self, membership: Membership | TeamMembership, *, now: datetime) -> None:
        """Check a key that was verified with `checked_later`. Raises Unauthenticated, NotATeamMember."""
        if self.key is None:
            return
        if self.key.rule_id is not None:
            rule = membership.rule if isinstance(membership, Membership) else None
            if membership.team is None or ended_with_rule(self.key, rule):
                raise Unauthenticated
            return
        if ended_with_user(self.key, membership.user, now=now) or ended_with_team(
            self.key, membership
        ):
            raise Unauthenticated
        if ended_with_membership(self.key, membership):
            raise NotATeamMember

    @property
    def own_scope(self) -> str | None:
        """The scope that it writes in a protected team. None for a trusted key, which writes the shared one."""
        return own_scope(self.holder_id, self.key)

    @property
    def scope_name(self) -> str | None:
        """The name of the own scope for people: that of the key or of the job. None for the scope of a user."""
        if self.key is None or self.writes_as_user:
            return None
        if self.key.run is None:
            return self.key.name
        run = self.key.run
        return " ".join(run[part] for part in ("repository", "event", "ref") if part in run) or None

    @property
    def may_replace(self) -> bool:
        """Whether it replaces artifacts in the shared scope of a protected team that keeps the first."""
        return self.key is not None and REPLACE in self.artifact_actions

    @property
    def writes_as_user(self) -> bool:
        """Whether it is a session, or a key that `turbo login` made."""
        return self.own_scope == scope_of_user(self.holder_id)

    @property
    def artifact_actions(self) -> Collection[str]:
        """What a key may do with artifacts. A session may do everything that its user's role allows."""
        return self.key.permissions.get("artifacts", ()) if self.key else ARTIFACT_ACTIONS

    @property
    def actor(self) -> Actor:
        """The principal as it is stored with what it does."""
        return Actor.of(self.credential.id, self.holder_id)
