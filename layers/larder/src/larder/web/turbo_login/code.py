"""The code that turbo exchanges for a key, and the name that turbo gives to the key."""

from dataclasses import dataclass

from larder.web.declared import text
from larder.web.guards import check_rate
from larder.web.powertools.resolver import Request

TOKEN = text("token", "The code from the end of the login.")
TOKEN_NAME = text("tokenName", "The name of the client.")


@dataclass(frozen=True, slots=True)
class Code:
    code: str
    client_name: str


def sent_code(request: Request) -> Code:
    """`?token=&tokenName=`. Raises TooManyRequests."""
    check_rate(request, request.route)
    return Code(TOKEN(request) or "", TOKEN_NAME(request) or "")
