"""What the build client asks for at a login, parsed and checked: the types that the handlers of logins name."""

from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

from aws_lambda_powertools.event_handler import Request
from aws_lambda_powertools.event_handler.depends import Depends

from larder.errors import InvalidQuery
from larder.web.turbo_login.loopback import Loopback, parse_loopback

LOGIN_PAGE = "/turborepo/token"


@dataclass(frozen=True, slots=True)
class LoginRequest:
    """What a build client asks for. `team` is an id or slug as it was sent; None for a login that names no team."""

    client: Loopback
    team: str | None
    user_agent: str


def login_request(request: Request) -> LoginRequest:
    """`?redirect_uri=`, and `&team=` for a login that names one. Raises NotLoopback, InvalidQuery."""
    query = request.query_parameters or {}
    client = parse_loopback(query.get("redirect_uri", ""), request)
    team = query.get("team")
    if team == "":
        raise InvalidQuery("team", "must name a team")
    return LoginRequest(client, team, request.headers.get("user-agent", ""))


def sso_page(request: Request) -> str:
    """`?teamId=&next=&state=`, or `&slug=`: the page that asks, with what it asks for. The page checks it.

    The build client sends a slug as `teamId` too. Raises InvalidQuery without a team.
    """
    query = request.query_parameters or {}
    team = query.get("teamId") or query.get("slug")
    if not team:
        raise InvalidQuery("teamId", "is required")
    asked = {"redirect_uri": query.get("next", ""), "team": team}
    if "state" in query:
        asked["state"] = query["state"]
    return f"{LOGIN_PAGE}?{urlencode(asked)}"


AskedLogin = Annotated[LoginRequest, Depends(login_request)]
SsoPage = Annotated[str, Depends(sso_page)]
