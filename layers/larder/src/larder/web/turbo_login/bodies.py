"""The JSON body of the page that confirms a login of turbo, parsed and checked."""

from dataclasses import dataclass

from larder.teams.slugs import parse_team_id
from larder.turbo_login.service import Grant
from larder.web.bodies.better_auth import parsed
from larder.web.bodies.model import BodyModel
from larder.web.errors import InvalidBody
from larder.web.origins import check_own_page
from larder.web.powertools.resolver import Request
from larder.web.turbo_login.loopback import MAX_STATE_LENGTH, Loopback, parse_loopback


class _Login(BodyModel):
    redirectUri: str  # noqa: N815  # the names on the wire
    state: str | None = None
    team: str | None = None
    teamId: str | None = None  # noqa: N815
    name: str | None = None
    password: str | None = None


@dataclass(frozen=True, slots=True)
class SentLogin:
    """What the user grants to turbo on our page, and the address where turbo waits.

    `password` is the user's, which the page asks for if the session is not fresh.
    """

    client: Loopback
    state: str | None
    grant: Grant
    password: str | None


def sent_login(request: Request) -> SentLogin:
    """`{"redirectUri", "state"?, "team"?, "teamId"?, "name"?, "password"?}`, sent by our own page.

    Raises MissingOrNullOrigin, InvalidOrigin, NotLoopback, InvalidBody, InvalidRequest.
    """
    check_own_page(request)
    body = parsed(request, _Login)
    team_id = None if body.teamId is None else parse_team_id(body.teamId)
    return SentLogin(
        client=parse_loopback(body.redirectUri, request),
        state=_checked_state(body.state),
        grant=Grant(name=body.name, team_id=team_id, sso_team=body.team),
        password=body.password,
    )


def _checked_state(state: str | None) -> str | None:
    if state is None:
        return None
    # JSON can escape half of a surrogate pair, which cannot be encoded.
    encodable = not any("\ud800" <= character <= "\udfff" for character in state)
    if len(state) > MAX_STATE_LENGTH or not encodable:
        raise InvalidBody("state", f"must be at most {MAX_STATE_LENGTH} characters")
    return state
