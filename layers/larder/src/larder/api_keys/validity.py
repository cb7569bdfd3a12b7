"""Keys that have ended before they are deleted.

A key ends when its user is deleted, when a password reset ends the user's keys, and, if it is bound to a team, with the
user's membership. A team's own key ends with the team only. The token of a rule ends when the rule is changed, disabled
or removed. The transaction that does this makes the key invalid, whatever happens to its deletion. So each request with
a key checks it: `verify_presented`, and the principals of the cache and of teams, which read the same items anyway.

While the user has no access, the key is refused, but not deleted: it works again when the user gets access again.
"""

from datetime import datetime

from larder.api_keys.models import ApiKey
from larder.teams.models import Membership, RuleState, TeamMembership, UserState


def ended_with_user(key: ApiKey, user: UserState | None, *, now: datetime) -> bool:
    """Whether the key's user was deleted or has no access, or a reset has ended the user's keys since the key was
    created.
    """
    if key.owned_by_team:
        return False
    return user is None or key.password_version < user.keys_from or not user.has_access(now)


def ended_with_membership(key: ApiKey, membership: Membership | TeamMembership) -> bool:
    """Whether the membership has ended in which the key was bound to its team, even if its user has joined again."""
    if key.team_id is None or not key.has_user:
        return False
    if membership.team is None or membership.member is None:
        return True
    return key.created_at < membership.member.joined_at


def ended_with_team(key: ApiKey, membership: Membership | TeamMembership) -> bool:
    """Whether the team that owns the key was deleted."""
    return key.owned_by_team and membership.team is None


def ended_with_rule(key: ApiKey, rule: RuleState | None) -> bool:
    """Whether the rule that gave the key to a CI job was removed, changed or disabled since."""
    return rule is None or not rule.enabled or rule.version != key.rule_version
