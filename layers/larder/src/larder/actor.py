"""Who did something, as it is stored with what they did."""

from typing import Final, NamedTuple

PASSWORD: Final = "password"  # noqa: S105  # a kind of credential
LINK: Final = "link"
CODE: Final = "code"
DELETION: Final = "deletion"
"""In place of the id of a key or session: what was used instead. A password, a link in an email, or a code of
`turbo login`. `DELETION` is what follows from the deletion of the user.
"""


class Actor(NamedTuple):
    """The key or session that was used, and its user.

    Artifacts of old versions have no `user_id`. Nor has a link that was followed without a session.
    """

    credential_id: str
    user_id: str | None = None

    def has_id(self, id: str) -> bool:
        """Whether `id` is the id of the key, the session or the user."""
        return id in (self.credential_id, self.user_id)
