"""Signed-in users who send requests to `/api/auth`."""

import pytest

from larder import clock
from larder.accounts.service import create_user
from larder.teams.models import Role
from tests.conftest import SetOption
from tests.functions.api_keys.people import member, signed_in, verified
from tests.requests import Cloud, Sender

OPERATOR = "operator@acme.example"


@pytest.fixture
def ada(cloud: Cloud) -> Sender:
    """Ada, the owner of the team `acme`."""
    return signed_in(cloud.user)


@pytest.fixture
def vera(cloud: Cloud) -> Sender:
    """A viewer of the team."""
    return signed_in(member(cloud, Role.VIEWER))


@pytest.fixture
def mallory(cloud: Cloud) -> Sender:
    """A user who is in no team."""
    return signed_in(create_user("mallory@elsewhere.example", "Mallory", now=clock.now()))


@pytest.fixture
def operator(cloud: Cloud, option: SetOption) -> Sender:
    option("operator_emails", OPERATOR)
    return signed_in(verified(create_user(OPERATOR, "Operator", now=clock.now())))
