"""The owner of the team of `cloud`, and a second one, so that the first can leave."""

import pytest

from larder import clock
from larder.accounts.service import create_user
from larder.teams.members import add_member
from larder.teams.models import Role
from tests.functions.teams.people import Person, signed_in
from tests.requests import Cloud


@pytest.fixture
def ada(cloud: Cloud) -> Person:
    """The owner, signed in."""
    return signed_in(cloud.user)


def co_owner(cloud: Cloud) -> None:
    now = clock.now()
    other = create_user("co-owner@acme.example", "Olga", now=now)
    add_member(cloud.team.id, other.id, Role.OWNER, now=now)
