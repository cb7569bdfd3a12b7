"""E-mail addresses: what is one, and which are the same to mail (RFC 5321, 6531, 6532)."""

import unicodedata
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

from larder.errors import InvalidEmail

MAX_ADDRESS_LENGTH = 254


def parse_address(text: str, field: str = "email") -> str:
    """The address as mail is sent to it: normalised and in lower case. Raises InvalidEmail, which names the field."""
    local, domain, _ = _parts(text, field)
    return f"{local}@{domain}"


def canonical(text: str) -> str:
    """The same for all addresses that mail, or an eye, takes for the same: in any letter case and Unicode form.

    It tells users apart; mail goes to the address as it is stored, never to another that has the same canonical form.
    """
    return _canonical(_shortened(text))


def _shortened(text: str) -> str:
    """Enough of a text to tell whether it is an address, so that none of any length is looked at, or remembered."""
    return text.strip()[: MAX_ADDRESS_LENGTH + 1]


@lru_cache(maxsize=1000)
def _canonical(text: str) -> str:
    local, _, ascii_domain = _parts(text)
    return f"{unicodedata.normalize('NFKC', local).casefold()}@{ascii_domain}"


def _parts(text: str, field: str = "email") -> tuple[str, str, str]:
    """The part before the @, the domain, and the domain as it stands in DNS."""
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
    """The library's own function. It loads for a while, so only who needs it pays for it."""
    import email_validator

    # Companies have mail under names such as `.local`. Whether mail arrives, a verification shows.
    email_validator.SPECIAL_USE_DOMAIN_NAMES.clear()
    return email_validator.validate_email
