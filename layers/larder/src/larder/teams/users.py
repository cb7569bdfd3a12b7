"""What a request reads of its user, without the rest of the account."""

from collections.abc import Mapping
from typing import Any

from larder.clock import from_ms
from larder.teams.models import UserState


def user_key(user_id: str) -> tuple[str, str]:
    """The key of the user's item in the identity table."""
    return user_id, "user"


def provider_account_key(user_id: str, provider_id: str) -> tuple[str, str]:
    """The key of the item of the user's account at an identity provider."""
    return user_id, f"account#{provider_id}"


def parse_user(item: Mapping[str, Any]) -> UserState:
    ends_at = item.get("access_until")
    return UserState(
        # Version 0.1.0 did not store it.
        proven=item.get("proven", False),
        keys_from=item.get("keys_from", 0),
        access_until=None if ends_at is None else from_ms(ends_at),
        is_suspended="suspended_at" in item,
    )
