"""A call to any endpoint for keys deletes expired keys, at most once in ten seconds."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from larder import clock
from larder.accounts.service import create_user
from larder.api_keys import repository
from larder.api_keys.keys import create_key, delete_expired_keys
from larder.api_keys.models import ApiKey
from larder.api_keys.properties import NewKey
from larder.instance import restart
from tests.faults import unreachable
from tests.functions.api_keys.people import API
from tests.requests import Cloud, Reply, Sender


def call(send: Sender, endpoint: str, cloud: Cloud) -> Reply:
    bodies: dict[str, Any] = {
        "create": {},
        "update": {"keyId": cloud.key.id, "name": "new"},
        "delete": {"keyId": cloud.key.id},
        "verify": {"key": cloud.token},
    }
    if endpoint in bodies:
        return send("POST", f"{API}/{endpoint}", json_body=bodies[endpoint])
    return Sender(send.token, query=f"id={cloud.key.id}")("GET", f"{API}/{endpoint}")


def expired(cloud: Cloud) -> ApiKey:
    long_ago = clock.now() - timedelta(days=1)
    return create_key(NewKey(user_id=cloud.user.id, expires_in_s=60), now=long_ago)[0]


@pytest.mark.parametrize("endpoint", ["create", "get", "list", "update", "delete", "verify"])
def test_any_call_deletes_expired_keys_at_most_once_in_ten_seconds(ada: Sender, cloud: Cloud, endpoint: str) -> None:
    first = expired(cloud)
    assert call(ada, endpoint, cloud).status == 200
    assert repository.get(first.key_hash) is None
    second = expired(cloud)
    restart()  # as another instance, which has not tried yet
    call(ada, "list", cloud)
    assert repository.get(second.key_hash) is not None


@pytest.mark.parametrize("endpoint", ["create", "get", "list", "delete"])
def test_a_failed_deletion_does_not_fail_the_call(ada: Sender, cloud: Cloud, endpoint: str) -> None:
    key = expired(cloud)
    with unreachable("dynamodb", "UpdateItem"):
        assert call(ada, endpoint, cloud).status == 200
    assert repository.get(key.key_hash) == key


def test_a_call_deletes_a_few_and_the_sweep_all(ada: Sender, cloud: Cloud) -> None:
    keys = [expired(cloud) for _ in range(22)]
    call(ada, "list", cloud)
    assert sum(repository.get(key.key_hash) is not None for key in keys) == 2
    assert delete_expired_keys(now=clock.now()) == 2
    assert not any(repository.get(key.key_hash) for key in keys)


def test_the_sweep_deletes_more_than_it_reads_at_once(cloud: Cloud) -> None:
    other = create_user("bob@acme.example", "Bob", now=clock.now())
    keys = [expired(replace(cloud, user=user)) for user in (cloud.user, other) for _ in range(51)]
    assert delete_expired_keys(now=clock.now()) == len(keys)
    assert delete_expired_keys(now=clock.now()) == 0
    assert repository.get(cloud.key.key_hash) == cloud.key
