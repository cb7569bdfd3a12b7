"""MaxKeysPerUser, at each endpoint that creates keys."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from larder import clock
from larder.api_keys import repository
from larder.api_keys.keys import create_key, list_keys
from larder.api_keys.properties import NewKey
from larder.turbo_login.service import Grant, create_token
from tests.conftest import SetOption
from tests.requests import Cloud, Reply, Sender, browser_of

TURBO = "http://127.0.0.1:9789"


def create(cloud: Cloud) -> Reply:
    return browser_of(cloud.user).post("/api-key/create", {})


def grant(cloud: Cloud) -> Reply:
    return browser_of(cloud.user).post("/turbo-login", {"redirectUri": TURBO})


def exchange(cloud: Cloud) -> Reply:
    code = create_token(cloud.user, Grant(sso_team="acme"), now=clock.now()).text
    query = f"token={code}&tokenName=laptop"
    return Sender(None, query=query)("GET", "/registration/verify")


each_way = pytest.mark.parametrize("ask", [create, grant, exchange])


@each_way
def test_an_expired_key_frees_space(cloud: Cloud, option: SetOption, ask: Callable[[Cloud], Reply]) -> None:
    option("max_keys_per_user", "2")
    yesterday = clock.now() - timedelta(days=1)
    expired, _ = create_key(NewKey(user_id=cloud.user.id, expires_in_s=60), now=yesterday)
    assert ask(cloud).status == 200
    assert repository.get(expired.key_hash) is None
    assert len(list_keys(cloud.user.id)) == 2


@each_way
def test_409_at_the_limit(cloud: Cloud, option: SetOption, ask: Callable[[Cloud], Reply]) -> None:
    option("max_keys_per_user", "1")
    assert ask(cloud).status == 409
    assert [key.id for key in list_keys(cloud.user.id)] == [cloud.key.id]
