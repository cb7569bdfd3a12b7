"""Who did something, as it is stored with what they did."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Actor:
    """The key or session that was used, and its user. Artifacts of old versions have no `user_id`."""

    credential_id: str
    user_id: str | None = None

    def has_id(self, id: str) -> bool:
        """Whether `id` is the id of the key, the session or the user."""
        return id in (self.credential_id, self.user_id)
