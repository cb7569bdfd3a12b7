"""Whether a user's address is proven. The quota of a user without a team depends on it."""

from collections.abc import Mapping
from typing import Any


def user_key(user_id: str) -> tuple[str, str]:
    """The key of the user's item in the identity table."""
    return user_id, "user"


def is_proven(user: Mapping[str, Any]) -> bool:
    """`user` is the item of a user, or empty if there is no such user."""
    return bool(user.get("proven"))
