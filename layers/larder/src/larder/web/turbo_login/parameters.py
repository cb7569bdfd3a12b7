"""The query parameters of a login of turbo, parsed and checked: the types that handlers name in their signatures."""

from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

from larder.web.errors import InvalidQuery
from larder.web.powertools.resolver import Depends, Request
from larder.web.turbo_login.loopback import Loopback, parse_loopback

LOGIN_PAGE = "/turborepo/token"


@dataclass(frozen=True, slots=True)
class LoginRequest:
    """A login that turbo asks for. `team` is an unchecked id or slug, None for a login without a team."""

    client: Loopback
    team: str | None
    user_agent: str


def login_request(request: Request) -> LoginRequest:
    """`?redirect_uri=`, and `&team=` for a login with a team. Raises NotLoopback, InvalidQuery."""
    query = request.query_parameters or {}
    client = parse_loopback(query.get("redirect_uri", ""), request)
    team = query.get("team")
    if team == "":
        raise InvalidQuery("team", "must name a team")
    return LoginRequest(client, team, request.headers.get("user-agent", ""))


def sso_page(request: Request) -> str:
    """`?teamId=&next=&state=`, or `&slug=`. Returns the URL of the login page, which checks the parameters.

    turbo sends a slug as `teamId` too. Raises InvalidQuery without a team.
    """
    query = request.query_parameters or {}
    team = query.get("teamId") or query.get("slug")
    if not team:
        raise InvalidQuery("teamId", "is required")
    parameters = {"redirect_uri": query.get("next", ""), "team": team}
    if "state" in query:
        parameters["state"] = query["state"]
    return f"{LOGIN_PAGE}?{urlencode(parameters)}"


AskedLogin = Annotated[LoginRequest, Depends(login_request)]
SsoPage = Annotated[str, Depends(sso_page)]
