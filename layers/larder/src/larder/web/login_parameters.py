"""What the build client and its page of consent send, parsed and checked: the types that its handlers name."""

from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

from aws_lambda_powertools.event_handler import Request
from aws_lambda_powertools.event_handler.depends import Depends
from pydantic import BaseModel, ConfigDict

from larder.api_keys.logins import Grant
from larder.errors import InvalidBody, InvalidQuery
from larder.teams.service import parse_team_id
from larder.web.auth_body import parsed
from larder.web.loopback import MAX_STATE_LENGTH, Loopback, parse_loopback
from larder.web.origins import check_own_page

LOGIN_PAGE = "/turborepo/token"


class _Login(BaseModel):
    model_config = ConfigDict(strict=True)

    redirectUri: str  # noqa: N815  # the names on the wire
    state: str | None = None
    team: str | None = None
    teamId: str | None = None  # noqa: N815
    name: str | None = None


@dataclass(frozen=True, slots=True)
class LoginRequest:
    """What a build client asks for. `team` is an id or slug as it was sent; None for a login that names no team."""

    client: Loopback
    team: str | None
    user_agent: str


@dataclass(frozen=True, slots=True)
class SentLogin:
    """What somebody at our page lets a build client have, and where it waits for it."""

    client: Loopback
    state: str | None
    grant: Grant


def login_request(request: Request) -> LoginRequest:
    """`?redirect_uri=`, and `&team=` for a login that names one. Raises NotLoopback, InvalidQuery."""
    query = request.query_parameters or {}
    client = parse_loopback(query.get("redirect_uri", ""), request)
    team = query.get("team")
    if team == "":
        raise InvalidQuery("team", "must name a team")
    return LoginRequest(client, team, request.headers.get("user-agent", ""))


def sent_login(request: Request) -> SentLogin:
    """`{"redirectUri", "state"?, "team"?, "teamId"?, "name"?}`, sent by our own page.

    Raises MissingOrNullOrigin, InvalidOrigin, NotLoopback, InvalidBody, InvalidRequest.
    """
    check_own_page(request)
    body = parsed(request, _Login)
    team_id = None if body.teamId is None else parse_team_id(body.teamId)
    return SentLogin(
        client=parse_loopback(body.redirectUri, request),
        state=_checked_state(body.state),
        grant=Grant(name=body.name, team_id=team_id, sso_team=body.team),
    )


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


def _checked_state(state: str | None) -> str | None:
    if state is None:
        return None
    # JSON may hold half a character, which has no bytes to send.
    whole = not any("\ud800" <= character <= "\udfff" for character in state)
    if len(state) > MAX_STATE_LENGTH or not whole:
        raise InvalidBody("state", f"must be at most {MAX_STATE_LENGTH} characters")
    return state


AskedLogin = Annotated[LoginRequest, Depends(login_request)]
GivenLogin = Annotated[SentLogin, Depends(sent_login)]
SsoPage = Annotated[str, Depends(sso_page)]
