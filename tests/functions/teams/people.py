"""Signed-in users inside and outside the team of `cloud`."""

from dataclasses import dataclass

from larder import clock
from larder.accounts.models import User
from larder.accounts.service import create_user
from larder.accounts.sessions import start_session
from larder.api_keys.models import NewKey, Permissions
from larder.api_keys.service import create_key
from larder.teams.models import Role
from larder.teams.service import add_member
from tests.requests import Cloud, Reply, Sender

JSON = dict[str, object]


@dataclass(frozen=True)
class Person:
    """A user with a session. `send` sends requests with it that name no team."""

    user: User
    send: Sender


def signed_in(user: User) -> Person:
    return Person(user, Sender(start_session(user, now=clock.now())[1]))


def newcomer(name: str = "bob") -> Person:
    """A user who is in no team."""
    return signed_in(create_user(f"{name}@acme.example", name.title(), now=clock.now()))


def joined(cloud: Cloud, role: Role, name: str = "bob") -> Person:
    """A member of the team of `cloud`."""
    person = newcomer(name)
    add_member(cloud.team.id, person.user.id, role, now=clock.now())
    return person


def key_of(person: Person, permissions: Permissions, *, team_id: str | None = None) -> Sender:
    """Send requests with a key of the user that has these permissions."""
    new = NewKey(user_id=person.user.id, permissions=permissions, team_id=team_id)
    return Sender(create_key(new, now=clock.now())[1])


def outcome(reply: Reply) -> tuple[int, str]:
    """The status and, for a refusal, the code."""
    return reply.status, reply.code if reply.status >= 400 else ""
