"""A user as JSON, for clients and for functions of the deployment's own."""

from typing import Any

from larder.accounts.models import User
from larder.clock import to_iso


def user_json(user: User) -> dict[str, Any]:
    return {
        "id": user.id,
        "email": user.email,
        "name": user.name,
        "image": user.image,
        "emailVerified": user.email_verified,
        "createdAt": to_iso(user.created_at),
        "updatedAt": to_iso(user.updated_at),
    }
