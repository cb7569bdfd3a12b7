"""The code that turbo exchanges for a key, and the name that turbo gives to the key."""

from dataclasses import dataclass
from typing import Annotated

from larder.web.guards import check_rate
from larder.web.powertools.resolver import Depends, Request


@dataclass(frozen=True, slots=True)
class Code:
    code: str
    client_name: str


def sent_code(request: Request) -> Code:
    """`?token=&tokenName=`. Raises TooManyRequests."""
    check_rate(request, request.route)
    query = request.query_parameters or {}
    return Code(query.get("token", ""), query.get("tokenName", ""))


SentCode = Annotated[Code, Depends(sent_code)]
