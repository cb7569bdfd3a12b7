"""The query parameters of a login of turbo, parsed and checked: the types that handlers name in their signatures."""

from dataclasses import dataclass
from urllib.parse import urlencode

from larder.web.declared import text
from larder.web.errors import InvalidQuery
from larder.web.guards import check_rate
from larder.web.powertools.resolver import Request
from larder.web.turbo_login.loopback import ADDRESS, Loopback, parse_loopback

LOGIN_PAGE = "/turborepo/token"

_WAITS_AT = "The URL on which the build client waits for its token."
REDIRECT_URI = text(
    "redirect_uri", _WAITS_AT, {"type": "string", "pattern": ADDRESS}, required=True
)
TEAM = text("team", "The team that the login is for.", {"type": "string", "minLength": 1})
USER_AGENT = text("user-agent", "The default name of the key is derived from it.", place="header")
TOKEN = text("token", "The code from the end of the login.")
TOKEN_NAME = text("tokenName", "The name of the client.")
TEAM_ID = text("teamId", "The id or slug of the team that the login is for.")
SLUG = text("slug", "Another name for `teamId`.")
NEXT = text("next", _WAITS_AT)
STATE = text("state", "Returned to the client unchanged.")


@dataclass(frozen=True, slots=True)
class LoginRequest:
    """A login that turbo asks for. `team` is an unchecked id or slug, None for a login without a team."""

    client: Loopback
    team: str | None
    user_agent: str


def login_request(request: Request) -> LoginRequest:
    """`?redirect_uri=`, and `&team=` for a login with a team. Raises NotLoopback, InvalidQuery."""
    client, team = parse_loopback(REDIRECT_URI(request) or "", request), TEAM(request)
    if team == "":
        raise InvalidQuery("team", "must name a team")
    return LoginRequest(client, team, USER_AGENT(request) or "")


def sso_page(request: Request) -> str:
    """`?teamId=&next=&state=`, or `&slug=`. Returns the URL of the login page, which checks the parameters.

    turbo sends a slug as `teamId` too. Raises InvalidQuery without a team.
    """
    team = TEAM_ID(request) or SLUG(request)
    if not team:
        raise InvalidQuery("teamId", "is required")
    parameters = {"redirect_uri": NEXT(request) or "", "team": team}
    if (state := STATE(request)) is not None:
        parameters["state"] = state
    return f"{LOGIN_PAGE}?{urlencode(parameters)}"


@dataclass(frozen=True, slots=True)
class Code:
    """The code that turbo exchanges for a key, and the name that turbo gives to the key."""

    code: str
    client_name: str


def sent_code(request: Request) -> Code:
    """`?token=&tokenName=`. Raises TooManyRequests."""
    check_rate(request, request.route)
    return Code(TOKEN(request) or "", TOKEN_NAME(request) or "")
