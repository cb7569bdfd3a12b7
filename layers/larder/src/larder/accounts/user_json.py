"""A user as clients, and the integrator's own functions, know them (reference: better-auth.md, 1 and 2)."""

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
