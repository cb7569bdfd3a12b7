"""Users, as the operator and the local cloud make them."""

import re
from datetime import datetime

from larder.accounts import repository
from larder.accounts.models import User
from larder.errors import InvalidRequest
from larder.hashing import random_id

_EMAIL = re.compile(r"[^@\s\x00-\x1f]{1,64}@[^@\s\x00-\x1f]{1,189}")


def create_user(email: str, name: str, *, now: datetime) -> User:
    """Add a person. Raises InvalidRequest for an address or name that is none, EmailTaken for a second user of one."""
    address = _address(email)
    if not 1 <= len(name.strip()) <= 100:
        raise InvalidRequest("name", "must hold 1 to 100 characters")
    user = User(id=random_id(), email=address, name=name.strip(), created_at=now, updated_at=now)
    repository.add(user)
    return user


def find_user_by_email(email: str) -> User | None:
    return repository.find_by_email(_address(email))


def _address(email: str) -> str:
    address = email.strip().lower()
    if not _EMAIL.fullmatch(address):
        raise InvalidRequest("email", "must be an e-mail address")
    return address


def issue_verification_token(user: User, *, now: datetime) -> str:  # noqa: ARG001
    """Stands for the real one, which is made elsewhere."""
    return f"{random_id()}.{random_id()}.{random_id()}"


def issue_reset_token(user: User, *, now: datetime) -> str:  # noqa: ARG001
    """Stands for the real one, which is made elsewhere."""
    return random_id(24)
