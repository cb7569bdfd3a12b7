"""One-way hashes of secrets, and the random values that secrets and ids are made of."""

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
"""What could be an id of a user, a key or a session."""


def hash_key(key: str) -> str:
    """What the store keeps of an API key: unpadded base64url of its SHA-256 (docs/clients/better-auth.md#api-keys)."""
    digest = hashlib.sha256(key.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def random_letters(length: int) -> str:
    """`length` random ASCII letters: the secret part of an API key."""
    return "".join(secrets.choice(_LETTERS) for _ in range(length))


def random_id(length: int = _ID_LENGTH) -> str:
    """A random id of ASCII letters and digits. 32 of them hold 190 bits."""
    return "".join(secrets.choice(_ALPHANUMERIC) for _ in range(length))


def is_random_id(text: str) -> bool:
    """Whether the text could be such an id of 32: those of users, keys and sessions are."""
    return RANDOM_ID.fullmatch(text) is not None


def time_ordered_id(now: datetime) -> str:
    """An id that sorts by the millisecond of `now`: 12 hexadecimal digits of time, 16 of chance."""
    return f"{int(now.timestamp() * 1000):012x}{secrets.token_hex(8)}"
