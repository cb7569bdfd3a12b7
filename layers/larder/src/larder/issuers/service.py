"""Which issuers are accepted.

An issuer is accepted if a rule names it or the operator has added it, and the option `trusted_issuers` has it or the
operator has added it. So a token cannot make Larder connect to a place that it names.
"""

from larder.errors import InvalidValue
from larder.issuers import repository
from larder.issuers.models import Issuer
from larder.issuers.urls import is_trusted, parse_issuer


def add_issuer(url: str, jwks_uri: str | None, *, origin: str) -> Issuer:
    """Accept an issuer, for the operator. `jwks_uri` can be on another host. Raises InvalidValue."""
    parse_issuer(url, origin=origin)
    if jwks_uri is not None:
        parse_issuer(jwks_uri, origin=origin, field="jwks_uri")
    repository.add(url, jwks_uri)
    found = repository.find(url)
    if found is None:
        raise InvalidValue("issuer", "was removed at the same time")
    return found


def remove_issuer(url: str) -> bool:
    """No longer accept an issuer that the operator has added. False if it was not added."""
    return repository.remove(url)


def list_issuers() -> list[Issuer]:
    """Every issuer that a rule names or the operator has added."""
    return repository.list_all()


def check_accepted(url: str, *, origin: str) -> None:
    """Check the issuer of a new rule. Raises InvalidValue."""
    parse_issuer(url, origin=origin)
    if is_trusted(url):
        return
    found = repository.find(url)
    if found is None or not found.is_added:
        raise InvalidValue(
            "issuer",
            "must first be accepted by the operator, with `larder issuers add` or TrustedIssuers",
        )
