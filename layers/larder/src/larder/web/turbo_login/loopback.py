"""The loopback address where turbo waits for its token (docs/clients/turbo.md#login).

As with every URL to redirect to (origins.py), only unambiguous spellings are accepted.
"""

import re
from dataclasses import dataclass
from urllib.parse import urlencode

from larder.web.errors import NotLoopback
from larder.web.powertools.resolver import Request
from larder.web.request_context import base_url

MAX_STATE_LENGTH = 512
"""turbo reads 8 kB of the request with its token, and percent-encoding can turn one character into twelve."""

_HIGHEST_PORT = 65_535
ADDRESS = re.compile(
    r"(?P<origin>http://(?:127\.0\.0\.1|localhost|\[::1\]):(?P<port>[1-9][0-9]{0,4}))/?"
)


@dataclass(frozen=True, slots=True)
class Loopback:
    """`http://127.0.0.1:9789`, without a slash at the end."""

    origin: str

    def callback(self, token: str, state: str | None) -> str:
        """The URL with the token, for the browser to open. If the client sent a state, it is returned unchanged."""
        parameters = {"token": token} if state is None else {"token": token, "state": state}
        return f"{self.origin}/?{urlencode(parameters)}"


def parse_loopback(text: str, request: Request) -> Loopback:
    """Raises NotLoopback, also for the address of this very service, which a local cloud has on the same computer."""
    match = ADDRESS.fullmatch(text)
    if match is None or int(match["port"]) > _HIGHEST_PORT:
        raise NotLoopback
    ours = ADDRESS.fullmatch(base_url(request))
    if ours is not None and ours["port"] == match["port"]:
        raise NotLoopback
    return Loopback(match["origin"])
