"""A user as JSON, for clients and for the deployment's own functions."""

from typing import TypedDict

from larder.accounts.models import User
from larder.clock import IsoTime
from larder.records import shaped


class UserJson(TypedDict):
    id: str
    email: str
    name: str
    image: str | None
    emailVerified: bool
    createdAt: IsoTime
    updatedAt: IsoTime


def user_json(user: User) -> UserJson:
    return shaped(UserJson, user)
