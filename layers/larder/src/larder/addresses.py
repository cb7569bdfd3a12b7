"""Email addresses: validation, and a canonical form for comparison (RFC 5321, 6531, 6532)."""

import re
import unicodedata
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

from larder.errors import InvalidEmail

MAX_ADDRESS_LENGTH = 254
_MAX_LOCAL_LENGTH = 64
"""Bytes (RFC 5321, 4.5.3.1.1)."""

_REACHABLE = re.compile(r"\.(?![0-9]+$)[^.]+$")
"""The domain has a top-level domain, which is no number."""


def parse_address(text: str, field: str = "email") -> str:
    """The address to store and to send email to: normalised and in lower case.

    Raises InvalidEmail with the field, also for an address that no mail can reach. `canonical` accepts it, because
    version 0.2.0 did.
    """
    local, domain, ascii_domain = _parts(text, field)
    if len(local.encode()) > _MAX_LOCAL_LENGTH or not _REACHABLE.search(ascii_domain):
        raise InvalidEmail(field)
    return f"{local}@{domain}"


def canonical(text: str) -> str:
    """One form for all spellings of an address that a mail server or a reader takes as the same: case, Unicode form.

    Use it to compare addresses and to find users. Send email only to the stored address, never to the canonical form.
    """
    return _canonical(_shortened(text))


def _shortened(text: str) -> str:
    """The text without surrounding spaces, cut where it is too long to be an address. Limits what the cache keeps."""
    return text.strip()[: MAX_ADDRESS_LENGTH + 1]


@lru_cache(maxsize=1000)
def _canonical(text: str) -> str:
    local, _, ascii_domain = _parts(text)
    return f"{unicodedata.normalize('NFKC', local).casefold()}@{ascii_domain}"


def _parts(text: str, field: str = "email") -> tuple[str, str, str]:
    """The part before the @, the domain, and the domain as in DNS (ASCII)."""
    validate = _validator()
    try:
        valid = validate(
            _shortened(text),
            check_deliverability=False,
            globally_deliverable=False,
        )
    except ValueError:
        raise InvalidEmail(field) from None
    return valid.local_part.lower(), valid.domain.lower(), valid.ascii_domain


@cache
def _validator() -> Callable[..., Any]:
    """The library's function. Imported here because the import is slow and few requests need it."""
    import email_validator

    # Companies use domains such as `.local`. The verification email shows whether an address works.
    email_validator.SPECIAL_USE_DOMAIN_NAMES.clear()
    return email_validator.validate_email
