"""Signed-in users inside and outside the team of `cloud`."""

from dataclasses import dataclass

from larder import clock
from larder.accounts.models import User
from larder.accounts.service import create_user
from larder.accounts.sessions import start_session
from larder.api_keys.keys import create_key
from larder.api_keys.models import ApiKey, Permissions
from larder.api_keys.properties import NewKey
from larder.teams.members import add_member
from larder.teams.models import Role
from tests.requests import Cloud, Reply, Sender

JSON = dict[str, object]
KEYS = "/v1/teams/acme/keys"


@dataclass(frozen=True)
class Person:
    """A user with a session. `send` sends requests with it that name no team."""

    user: User
    send: Sender


def signed_in(user: User) -> Person:
    return Person(user, Sender(start_session(user, now=clock.now())[1]))


def newcomer(name: str = "bob") -> Person:
    """A user who is in no team."""
    user = create_user(f"{name}@acme.example", name.title(), email_verified=True, now=clock.now())
    return signed_in(user)


def joined(cloud: Cloud, role: Role, name: str = "bob") -> Person:
    """A member of the team of `cloud`."""
    person = newcomer(name)
    add_member(cloud.team.id, person.user.id, role, now=clock.now())
    return person


def key_of(person: Person, permissions: Permissions, *, team_id: str | None = None) -> Sender:
    """Send requests with a key of the user that has these permissions."""
    new = NewKey(user_id=person.user.id, permissions=permissions, team_id=team_id)
    return Sender(create_key(new, now=clock.now())[1])


def team_key(cloud: Cloud, person: Person) -> tuple[ApiKey, str]:
    """A key of the user that is bound to the team of `cloud`, and the secret key."""
    new = NewKey(user_id=person.user.id, team_id=cloud.team.id, name="ci")
    return create_key(new, now=clock.now())


def outcome(reply: Reply) -> tuple[int, str]:
    """The status and, for a refusal, the code."""
    return reply.status, reply.code if reply.status >= 400 else ""
