"""Types of the audit log. It records who got access, and what was deleted or replaced."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from larder.actor import Actor
from larder.records import Name


class Action(StrEnum):
    """The recorded action. The text of each also says what the entry's `subject` is."""

    SIGNED_UP = "signed_up"
    """A user signed up. `subject` is the user, as in all entries of accounts that name nothing else."""
    USER_CREATED = "user_created"
    """The operator created a user."""
    USER_DELETED = "user_deleted"
    SIGNED_IN = "signed_in"
    """A session began. `subject` is its id."""
    SESSION_ENDED = "session_ended"
    """One session was revoked. `subject` is its id."""
    SESSIONS_ENDED = "sessions_ended"
    """All sessions of the user were revoked. After `/revoke-other-sessions`, that of the actor stays."""
    PASSWORD_CHANGED = "password_changed"  # noqa: S105  # names of actions
    PASSWORD_RESET = "password_reset"  # noqa: S105
    EMAIL_CHANGED = "email_changed"
    EMAIL_VERIFIED = "email_verified"
    EMAIL_PROVEN = "email_proven"
    KEY_CREATED = "key_created"
    """`subject` is the id of the key. A key of a team has two entries: that of its user, and that of the team."""
    KEY_CHANGED = "key_changed"
    KEY_ROTATED = "key_rotated"
    """A new key replaced this one. `details` have its id, `successor`. It has no `key_created`."""
    KEY_ADOPTED = "key_adopted"
    """The operator made a user's key the team's own. It has the two entries of a key of a team."""
    KEY_DELETED = "key_deleted"
    KEYS_DELETED = "keys_deleted"
    """A password reset deleted all keys of the user."""
    TEAM_CREATED = "team_created"
    """`subject` is the user who owns it."""
    TEAM_DELETED = "team_deleted"
    """`subject` is the team."""
    TEAM_CHANGED = "team_changed"
    """`subject` lists the changed properties, such as `name,slug`."""
    CACHING_SET = "caching_set"
    """Caching was enabled, paused or disabled. `subject` is the status."""
    BLOCK_SET = "block_set"
    """The operator blocked the owner. `subject` is the kind of block."""
    BLOCK_LIFTED = "block_lifted"
    """`subject` is the owner."""
    QUOTA_SET = "quota_set"
    """The operator set the quota. `subject` is the number of bytes, or `default`."""
    MEMBER_INVITED = "member_invited"
    """`subject` is the id of the invitation, `role` the offered role."""
    INVITATION_WITHDRAWN = "invitation_withdrawn"
    MEMBER_ADDED = "member_added"
    """`subject` is the user. `role` is their role, after the change of one."""
    MEMBER_REMOVED = "member_removed"
    ROLE_CHANGED = "role_changed"
    LAST_OWNER_KEPT = "last_owner_kept"
    """The groups of the user no longer give them a role, or a lower one, but they are the last owner of the team."""
    PROTECTION_SET = "protection_set"
    """The protection of a team was decided or changed. `subject` lists its settings, such as `protected=true`."""
    ARTIFACT_REPLACED = "artifact_replaced"
    """Another writer replaced an artifact. `subject` is its hash."""
    ARTIFACT_DELETED = "artifact_deleted"
    """One artifact was deleted. `subject` is its hash."""
    REMOVAL_ASKED = "removal_asked"
    """The removal of all that a key, session or user wrote was requested. `subject` is the id of that writer."""
    REMOVAL_DONE = "removal_done"
    """One run of such a removal, of possibly several, has ended. `subject` is the same id."""
    RULE_ADDED = "rule_added"
    """`subject` is the id of the rule, as in the entries that follow."""
    RULE_CHANGED = "rule_changed"
    """The rule was changed, enabled or disabled. Its tokens ended."""
    RULE_REMOVED = "rule_removed"
    RULE_PINNED = "rule_pinned"
    """The first token of a repository fixed the ids of the rule that waited for it. The actor is the token's key."""
    TOKEN_ISSUED = "token_issued"  # noqa: S105  # the name of an action
    """A CI job got a key. `owner` is `token#` and the id of the key, `subject` the rule, `details` the job."""
    ACCOUNT_LINKED = "account_linked"
    """The user can sign in with an identity provider. `subject` is the id of the provider, as in the next entry."""
    ACCOUNT_UNLINKED = "account_unlinked"
    ACCOUNT_CLAIMED = "account_claimed"
    """A provider has proven the address of an account that a stranger may have made. Password, sessions and keys ended.
    """
    SIGN_IN_REFUSED = "sign_in_refused"
    """A person with a valid id token did not get a session. `owner` is `sso#` and the id of the provider, `subject` the
    code of the refusal."""
    PROVIDER_ADDED = "provider_added"
    """The operator added a provider. `owner` is `sso#` and its id, `subject` its id, as in the entries that follow."""
    PROVIDER_CHANGED = "provider_changed"
    PROVIDER_REMOVED = "provider_removed"
    USER_SUSPENDED = "user_suspended"
    """The operator ended the access of the user, until `user_resumed`."""
    USER_RESUMED = "user_resumed"


ABOUT_USERS = frozenset(
    {
        Action.SIGNED_UP,
        Action.USER_CREATED,
        Action.USER_DELETED,
        Action.ACCOUNT_CLAIMED,
        Action.TEAM_CREATED,
        Action.MEMBER_ADDED,
        Action.MEMBER_REMOVED,
        Action.ROLE_CHANGED,
        Action.LAST_OWNER_KEPT,
    }
)
"""The actions whose `subject` is a user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One action. `id` sorts by time. `artifacts` and `size_bytes` count what it removed.

    `actor` is None for an operator at the command line. AWS authenticates them, so Larder does not know the user.
    `name` is the name of the subject at that time, for keys, rules and, as an address, invitations. They may be deleted
    since. Users are found by their id, so that their names end with their accounts.
    `role` is the role that a member got or lost. `details` say more about the key of a CI job, and about a rotation.
    """

    id: str
    owner: str
    at: datetime
    action: Action
    subject: str
    actor: Actor | None
    artifacts: int = 0
    size_bytes: int = 0
    name: str | None = None
    role: str | None = None
    details: Annotated[Mapping[str, str], Name(absent={})] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Entries, newest first. Pass `next_before` as `before` for the next page; None on the last page.

    A page of selected actions can have fewer entries than the limit, even none, without being the last.
    """

    entries: tuple[Entry, ...]
    next_before: str | None
