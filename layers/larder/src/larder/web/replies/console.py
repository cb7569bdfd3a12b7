"""What the console starts with, in a reply."""

from collections.abc import Sequence

from larder import clock
from larder.accounts.models import Session
from larder.accounts.sessions import is_fresh
from larder.accounts.user_json import UserJson, user_json
from larder.clock import IsoTime, to_iso
from larder.teams.models import TeamMembership
from larder.web.principals.session import UserPrincipal
from larder.web.replies.accounts import SessionJson, session_json
from larder.web.replies.clients import TeamsJson, teams_json


class ConsoleSessionJson(SessionJson):
    """`fresh` says whether the user has signed in recently, as the list of sessions requires."""

    fresh: bool


class ConsoleJson(TeamsJson):
    """The first teams, as `GET /v2/teams` lists them. It continues with `next`.

    The user's sessions and keys end at `accessUntil`, unless they sign in with their company before. It is null for
    users whose company does not require that.
    """

    session: ConsoleSessionJson
    user: UserJson
    operator: bool
    accessUntil: IsoTime | None  # noqa: N815  # the name on the wire


def console_json(
    principal: UserPrincipal,
    session: Session,
    memberships: Sequence[TeamMembership],
    following: str | None,
) -> ConsoleJson:
    until = principal.user.access_until
    return {
        **teams_json(memberships, following),
        "session": {
            **session_json(session, principal.token),
            "fresh": is_fresh(session, now=clock.now()),
        },
        "user": user_json(principal.user),
        "operator": principal.is_operator,
        "accessUntil": None if until is None else to_iso(until),
    }
