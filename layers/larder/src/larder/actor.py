"""Who did something, as it is stored with what they did."""

from typing import Final, NamedTuple

PASSWORD: Final = "password"  # noqa: S105  # a kind of credential
LINK: Final = "link"
CODE: Final = "code"
DELETION: Final = "deletion"
"""In place of the id of a key or session: what was used instead. A password, a link in an email, or a code of
`turbo login`. `DELETION` is what follows from the deletion of the user. A sign-in with an identity provider has
`by_provider`.
"""


def by_provider(provider_id: str) -> str:
    """In place of the id of a key or session: the person has signed in with this identity provider."""
    return f"provider:{provider_id}"


RULE_ID_PREFIX = "rule_"
"""No user's id begins with this. So an id says whether a person or a rule acts (docs/decisions/ci-tokens.md)."""


def is_rule_id(id: str) -> bool:
    """Whether it is the id of a rule of a team, whose tokens belong to CI jobs, and not that of a user."""
    return id.startswith(RULE_ID_PREFIX)


class Actor(NamedTuple):
    """The key or session that was used, and its user or, for the token of a CI job, its rule.

    Artifacts of old versions have no `user_id`. Nor has a link that was followed without a session.
    """

    credential_id: str
    user_id: str | None = None
    rule_id: str | None = None

    @classmethod
    def of(cls, credential_id: str, holder_id: str | None) -> "Actor":
        """The actor with this `holder_id`."""
        if holder_id is not None and is_rule_id(holder_id):
            return cls(credential_id, rule_id=holder_id)
        return cls(credential_id, holder_id)

    @property
    def holder_id(self) -> str | None:
        """The user or the rule, as it is stored and shown."""
        return self.user_id or self.rule_id

    def has_id(self, id: str) -> bool:
        """Whether `id` is the id of the key, the session, the user or the rule."""
        return id in (self.credential_id, self.holder_id)
