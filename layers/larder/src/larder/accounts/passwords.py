"""Passwords and their hashes: `salt:key` in hexadecimal, by scrypt (docs/clients/better-auth.md#passwords).

If the parameters differ from Better Auth's, they come first: `scrypt$N$r$p$salt:key`. So hashes with other parameters
can still be verified, and are replaced at the next sign-in.
"""

import hashlib
import hmac
import secrets
import unicodedata
from functools import cache
from pathlib import Path

from larder.errors import PasswordTooCommon, PasswordTooLong, PasswordTooShort
from larder.extensions import hook
from larder.settings import settings

_SALT_BYTES = 16
_KEY_BYTES = 64
_REFERENCE = (16384, 16, 1)


_COMMON = Path(__file__).with_name("common_passwords.txt")


def check_new_password(password: str, field: str = "password") -> None:
    """Check a password that a user wants to set. Raises PasswordTooShort, PasswordTooLong, PasswordTooCommon."""
    check_length(password, field)
    if settings().refuse_common_passwords and _plain(password) in _common_passwords():
        raise PasswordTooCommon(field)


def check_length(password: str, field: str = "password") -> None:
    """Counts UTF-16 code units, as JavaScript does.

    Raises PasswordTooShort, PasswordTooLong, which name the field.
    """
    units = _utf16_units(password)
    # NULs at the end do not count: scrypt begins with HMAC, which ignores them.
    significant = units - (len(password) - len(password.rstrip("\0")))
    if significant < settings().minimum_password_length:
        raise PasswordTooShort(field, *_bounds())
    check_not_too_long(password, field)


def check_not_too_long(password: str, field: str = "password") -> None:
    """Refuse a text that cannot be a password, before it is hashed. Raises PasswordTooLong, which names the field."""
    if _utf16_units(password) > settings().maximum_password_length:
        raise PasswordTooLong(field, *_bounds())


def hash_password(password: str) -> str:
    """The hash to store. The integrator's `hash_password` makes it, if there is one."""
    own = hook("hash_password")
    if own is not None:
        result = own(password=password)
        if not isinstance(result, str) or not result:
            raise own.refused("must return a text")
        return result
    salt = secrets.token_hex(_SALT_BYTES)
    parameters = _parameters()
    header = "" if parameters == _REFERENCE else "scrypt${}${}${}$".format(*parameters)
    return f"{header}{salt}:{_scrypt(password, salt, parameters).hex()}"


def verify_password(password: str, stored: str | None) -> bool:
    """Whether the password matches. With `stored` None, it takes as long as for a wrong password."""
    verify = hook("verify_password")
    if verify is not None:
        return (
            verify(hash=stored or _dummy_hash(), password=password) is True and stored is not None
        )
    parameters, salt, key = _parse(stored or _dummy_hash())
    right = hmac.compare_digest(_scrypt(password, salt, parameters), key)
    return right and stored is not None


def needs_rehash(stored: str) -> bool:
    """Whether the hash was made with other parameters than the current ones."""
    if hook("hash_password") or hook("verify_password"):
        return False
    return _parse(stored)[0] != _parameters()


@cache
def _common_passwords() -> frozenset[str]:
    """Read on first use, because few deployments and few requests need it."""
    return frozenset(_COMMON.read_text().split())


def _plain(password: str) -> str:
    """As in the list, which is in lower case. scrypt ignores NULs at the end."""
    return unicodedata.normalize("NFKC", password).casefold().rstrip("\0")


def _bounds() -> tuple[int, int]:
    return settings().minimum_password_length, settings().maximum_password_length


def _utf16_units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _scrypt(password: str, salt: str, parameters: tuple[int, int, int]) -> bytes:
    n, r, p = parameters
    # JSON can contain a lone surrogate, which cannot be encoded. Better Auth, in JavaScript, hashes U+FFFD instead.
    normal = unicodedata.normalize("NFKC", password)
    text = normal.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return hashlib.scrypt(
        text.encode(),
        salt=salt.encode(),  # the hexadecimal text itself, as Better Auth does
        n=n,
        r=r,
        p=p,
        maxmem=2 * 128 * n * r + 2**20,
        dklen=_KEY_BYTES,
    )


def _parameters() -> tuple[int, int, int]:
    return settings().scrypt_cost, _REFERENCE[1], _REFERENCE[2]


def _parse(stored: str) -> tuple[tuple[int, int, int], str, bytes]:
    parameters = _REFERENCE
    if stored.startswith("scrypt$"):
        _, n, r, p, stored = stored.split("$")
        parameters = (int(n), int(r), int(p))
    salt, _, key = stored.partition(":")
    return parameters, salt, bytes.fromhex(key)


def _dummy_hash() -> str:
    """A hash that no password matches. Verifying against it takes as long as against a real one."""
    return f"scrypt${settings().scrypt_cost}${_REFERENCE[1]}${_REFERENCE[2]}${'0' * 32}:{'0' * 128}"
