"""One-way hashes of secrets, and random values for secrets and ids."""

import base64
import hashlib
import re
import secrets
import string
from datetime import datetime

_LETTERS = string.ascii_letters
_ALPHANUMERIC = string.ascii_letters + string.digits
_ID_LENGTH = 32

RANDOM_ID = re.compile(rf"[A-Za-z0-9]{{{_ID_LENGTH}}}")
"""The form of the ids of users, keys and sessions."""


def hash_key(key: str) -> str:
    """The stored hash of an API key: unpadded base64url of its SHA-256 (docs/clients/better-auth.md#api-keys)."""
    digest = hashlib.sha256(key.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def random_letters(length: int) -> str:
    """`length` random ASCII letters: the secret of an API key."""
    return "".join(secrets.choice(_LETTERS) for _ in range(length))


def random_id(length: int = _ID_LENGTH) -> str:
    """A random id of ASCII letters and digits. 32 of them have 190 random bits."""
    return "".join(secrets.choice(_ALPHANUMERIC) for _ in range(length))


def is_random_id(text: str) -> bool:
    """Whether the text has the form of an id of a user, key or session."""
    return RANDOM_ID.fullmatch(text) is not None


def time_ordered_id(now: datetime) -> str:
    """An id that sorts by the millisecond of `now`: 12 hexadecimal digits of time, then 16 random ones."""
    return f"{int(now.timestamp() * 1000):012x}{secrets.token_hex(8)}"
