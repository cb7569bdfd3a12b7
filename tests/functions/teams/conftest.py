"""A second owner, so that the first can leave."""

from larder import clock
from larder.accounts.service import create_user
from larder.teams.members import add_member
from larder.teams.models import Role
from tests.requests import Cloud


def co_owner(cloud: Cloud) -> None:
    now = clock.now()
    other = create_user("co-owner@acme.example", "Olga", now=now)
    add_member(cloud.team.id, other.id, Role.OWNER, now=now)
