"""Signed-in users, and the contents of the table of API keys."""

from dataclasses import replace
from typing import Any

from larder import aws, clock
from larder.accounts import repository
from larder.accounts.models import User
from larder.accounts.service import create_user, read_account
from larder.accounts.sessions import start_session
from larder.settings import settings
from larder.teams.members import add_member
from larder.teams.models import Role
from tests.requests import Cloud, Reply, Sender

API = "/api/auth/api-key"


def signed_in(user: User) -> Sender:
    """Sends requests with a new session of the user's."""
    return Sender(start_session(user, now=clock.now())[1])


def member(cloud: Cloud, role: Role) -> User:
    """A new member of the team of `cloud`."""
    user = create_user(f"{role.lower()}@acme.example", role.capitalize(), now=clock.now())
    add_member(cloud.team.id, user.id, role, now=clock.now())
    return user


def verified(user: User) -> User:
    """The same user with a proven address."""
    account = read_account(user.id)
    changed = replace(account, user=replace(account.user, email_verified=True, proven=True))
    stored = repository.change(account, changed)
    assert stored is not None
    return stored.user


def stored_keys() -> list[dict[str, Any]]:
    """Every item of the table of API keys, except for the time of the last clean-up."""
    items = aws.dynamodb().scan(TableName=settings().api_keys_table)["Items"]
    return [item for item in map(aws.deserialize, items) if "id" in item]


def refused(reply: Reply) -> tuple[int, str]:
    """Status and code of an error."""
    return reply.status, reply.json["code"]
