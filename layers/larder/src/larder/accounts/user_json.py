"""A user as JSON, for clients and for the deployment's own functions."""

from typing import TypedDict

from larder.accounts.models import User
from larder.clock import IsoTime, to_iso


class UserJson(TypedDict):
    id: str
    email: str
    name: str
    image: str | None
    emailVerified: bool
    createdAt: IsoTime
    updatedAt: IsoTime


def user_json(user: User) -> UserJson:
    return {
        "id": user.id,
        "email": user.email,
        "name": user.name,
        "image": user.image,
        "emailVerified": user.email_verified,
        "createdAt": to_iso(user.created_at),
        "updatedAt": to_iso(user.updated_at),
    }
