"""Passwords and their hashes: `salt:key` in hexadecimal, by scrypt (docs/clients/better-auth.md#passwords).

Parameters other than Better Auth's stand in front, `scrypt$N$r$p$salt:key`, so that hashes made with others are still
verified, and made anew at the next sign-in.
"""

import hashlib
import hmac
import secrets
import unicodedata

from larder.errors import PasswordTooLong, PasswordTooShort
from larder.extensions import load
from larder.settings import SettingsError, settings

_SALT_BYTES = 16
_KEY_BYTES = 64
_REFERENCE = (16384, 16, 1)


def check_length(password: str, field: str = "password") -> None:
    """Counted as JavaScript counts: in UTF-16 code units.

    Raises PasswordTooShort, PasswordTooLong, which name the field.
    """
    units = _utf16_units(password)
    # To HMAC, which scrypt begins with, NULs at the end are nothing.
    told = units - (len(password) - len(password.rstrip("\0")))
    if told < settings().minimum_password_length:
        raise PasswordTooShort(field, *_bounds())
    check_not_too_long(password, field)


def check_not_too_long(password: str, field: str = "password") -> None:
    """What no password can be costs no hash. Raises PasswordTooLong, which names the field."""
    if _utf16_units(password) > settings().maximum_password_length:
        raise PasswordTooLong(field, *_bounds())


def hash_password(password: str) -> str:
    """The hash that is stored, by the integrator's own function where the option names one."""
    if settings().password_hash:
        made = load("password_hash")(password=password)
        if not isinstance(made, str) or not made:
            raise SettingsError(f"{settings().password_hash} must return a text")
        return made
    salt = secrets.token_hex(_SALT_BYTES)
    parameters = _parameters()
    shown = "" if parameters == _REFERENCE else "scrypt${}${}${}$".format(*parameters)
    return f"{shown}{salt}:{_scrypt(password, salt, parameters).hex()}"


def verify_password(password: str, stored: str | None) -> bool:
    """Whether the password is the one that was hashed. A user without one costs the same time as a wrong password."""
    if settings().password_verify:
        verify = load("password_verify")
        return verify(hash=stored or _nobodys(), password=password) is True and stored is not None
    parameters, salt, key = _parse(stored or _nobodys())
    right = hmac.compare_digest(_scrypt(password, salt, parameters), key)
    return right and stored is not None


def needs_rehash(stored: str) -> bool:
    """Whether the hash was made with other parameters than those of today."""
    if settings().password_hash or settings().password_verify:
        return False
    return _parse(stored)[0] != _parameters()


def _bounds() -> tuple[int, int]:
    return settings().minimum_password_length, settings().maximum_password_length


def _utf16_units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _scrypt(password: str, salt: str, parameters: tuple[int, int, int]) -> bytes:
    n, r, p = parameters
    # A lone surrogate, which JSON can hold, is no text; Better Auth, in JavaScript, hashes U+FFFD in its place.
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


def _nobodys() -> str:
    """A hash that no password has: verifying against it takes as long as against a real one."""
    return f"scrypt${settings().scrypt_cost}${_REFERENCE[1]}${_REFERENCE[2]}${'0' * 32}:{'0' * 128}"
