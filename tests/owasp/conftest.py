"""Ada with data of every kind, and Mallory, who has the same kinds of data and attacks Ada's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from larder import aws, clock
from larder.accounts.models import User
from larder.accounts.service import create_user
from larder.accounts.sessions import start_session
from larder.api_keys.keys import create_key
from larder.api_keys.models import Permissions
from larder.api_keys.properties import NewKey
from larder.invitations import service as invitations
from larder.invitations.models import Invitee
from larder.settings import settings
from larder.teams.members import add_member
from larder.teams.models import Role, Team
from larder.teams.teams import create_team
from tests.catalogue import Names
from tests.conftest import BeginWith, SetOption
from tests.documented import document
from tests.mailbox import Mailbox
from tests.requests import Sender

EVERYTHING: Permissions = {"artifacts": ("read", "write", "manage"), "teams": ("read", "write")}
HASH = "deadbeefdeadbeef"
PASSWORD = "a good one"


@dataclass(frozen=True)
class Person:
    """A user with a team, a member in it, an invitation to it, a key, a session and an artifact."""

    user: User
    team: Team
    member_id: str
    invitation_id: str
    key_id: str
    key: str = field(repr=False)
    session: str = field(repr=False)

    @property
    def by_key(self) -> Sender:
        return Sender(self.key)

    @property
    def by_session(self) -> Sender:
        return Sender(self.session)

    @property
    def names(self) -> Names:
        """The names of the user's data, for requests of the catalogue."""
        return Names(
            team=self.team.id,
            hash=HASH,
            member=self.member_id,
            key=self.key,
            key_id=self.key_id,
            session=self.session,
            other_session=self.session,
            email=self.user.email,
            password=PASSWORD,
        )

    @property
    def ids(self) -> list[str]:
        """Names of the user's data that others can know."""
        return [self.user.id, self.team.id, self.team.slug, self.invitation_id, self.key_id]

    @property
    def traces(self) -> list[str]:
        """Values of the user that must not show in replies to others."""
        return [*self.ids, self.user.email, self.member_id, self.key, self.session]


@pytest.fixture
def people(begin_with: BeginWith, option: SetOption, mailbox: Mailbox, removal_jobs: object) -> dict[str, Person]:
    made = begin_with(_ada_and_mallory, option)
    option("scrypt_cost", 1024)
    return made


def _ada_and_mallory(option: SetOption) -> dict[str, Person]:
    option("scrypt_cost", 1024)
    return {name: person(name) for name in ("ada", "mallory")}


@pytest.fixture
def ada(people: dict[str, Person]) -> Person:
    return people["ada"]


@pytest.fixture
def mallory(people: dict[str, Person]) -> Person:
    return people["mallory"]


def person(name: str) -> Person:
    now = clock.now()
    user = create_user(f"{name}@{name}.example", name.title(), password=PASSWORD, now=now)
    team = create_team(f"Team of {name}", f"team-of-{name}", owner_user_id=user.id, now=now)
    member = create_user(f"member-of-{name}@{name}.example", "Member", now=now)
    add_member(team.id, member.id, Role.MEMBER, now=now)
    invited = f"invited-by-{name}@{name}.example"
    invitee = Invitee(email=invited, address=invited, role=Role.ADMIN)
    (invitation,) = invitations.create_invitations(team.id, [invitee], by=None, now=now)
    key, raw = create_key(NewKey(user_id=user.id, name=name, permissions=EVERYTHING), now=now)
    session = start_session(user, now=now)[1]
    made = Person(user, team, member.id, invitation.id, key.id, raw, session)
    for scope in (f"?slug={team.slug}", ""):
        content = f"the artifact of {name}".encode()
        assert made.by_key("PUT", f"/v8/artifacts/{HASH}{scope}", body=content).status == 202
    return made


def stored(*, but_of: str | None = None) -> frozenset[str]:
    """Every item of every table except the rate limit counters, and every object.

    Leaves out the key with the id `but_of`, because each use changes it.
    """
    options = settings()
    items = [
        f"{table} {item}"
        for table in (
            options.identity_table, options.api_keys_table, options.teams_table, options.artifacts_table,
            options.audit_table,
        )
        for item in aws.dynamodb().scan(TableName=table)["Items"]
        if but_of is None or item.get("id") != {"S": but_of}
    ]  # fmt: skip
    objects = aws.s3().list_objects_v2(Bucket=options.artifacts_bucket).get("Contents", [])
    return frozenset([*items, *(f"{one['Key']} {one['ETag']}" for one in objects)])


def operations() -> dict[tuple[str, str], dict[str, Any]]:
    """The operations of the OpenAPI document, by method and path."""
    return {
        (method.upper(), path): operation
        for path, methods in document()["paths"].items()
        for method, operation in methods.items()
    }


def json_body(operation: dict[str, Any]) -> dict[str, Any] | None:
    """The schema and example of the JSON body, or None without a body."""
    content = operation.get("requestBody", {}).get("content", {})
    found: dict[str, Any] | None = content.get("application/json")
    return found
