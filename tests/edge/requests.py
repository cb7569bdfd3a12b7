"""Requests to the functions of the edge, with addresses that Larder signs."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from time import time
from typing import Any

from larder.artifacts.edge import Kind, signed_address
from larder.signing import EdgeKey
from local.edge.engine import EdgeFunction
from local.edge.events import check_request, request_event

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "edge"
KEY = EdgeKey("a", "0123456789abcdef" * 4)
PATH = "/artifacts/team_abc/08e4547d5347b63f/019aa0000000aaaabbbbccccdddd.keyId.userId"
TAG = "mOmgm8byUJdRCCnQpm6uarHG8DkMuDM2uhBLH/3mLQM="
SENT = {"host": "d1.cloudfront.net", "user-agent": "turbo 2.11.11"}

Event = dict[str, Any]


@dataclass
class EdgeRequests:
    """Sends requests to the request function, whose store has these entries."""

    stored: dict[str, str] = field(default_factory=lambda: {f"key-{KEY.id}": f"{KEY.key} once"})
    networks: str = ""

    def __post_init__(self) -> None:
        code = (FOLDER / "request.js").read_text().replace("${AllowedNetworks}", self.networks)
        self._function = EdgeFunction(code, self.stored.get)

    def __call__(
        self, method: str, url: str, headers: dict[str, str] | None = None, viewer: str = "192.0.2.1"
    ) -> Event:
        """What the function returns: the request that goes to the bucket, or the reply to the client."""
        path, _, query = url.removeprefix("https://edge.example.com").partition("?")
        sent = list({**SENT, **(headers or {})}.items())
        return self.of(request_event(method, path, query, sent, viewer))

    def of(self, event: Event) -> Event:
        result = self._function(event)
        if "statusCode" not in result:
            check_request(event["request"], result)
        return result


def signed(kind: Kind, *, path: str = PATH, lasts_s: int = 600, key: EdgeKey = KEY, **bound: Any) -> str:
    """An address that is signed for `path`."""
    return signed_address(key, kind, path, expires_at=int(time()) + lasts_s, **bound)


def refusal(result: Event) -> tuple[int, str]:
    """Status and code of a refusal."""
    body = json.loads(result["body"]["data"])
    assert result["headers"]["content-type"] == {"value": "application/json"}
    assert set(body["error"]) == {"code", "message"}
    return result["statusCode"], body["error"]["code"]


def values(result: Event) -> dict[str, str]:
    """The headers that reach the bucket."""
    assert "statusCode" not in result, result
    return {name: header["value"] for name, header in result["headers"].items()}
