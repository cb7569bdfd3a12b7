"""Behaviour that functions share, tested at each of them with its sample event, for each shared policy of the template.

The functions come from the template, so that the tests also cover new ones.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest

from larder import aws, clock
from larder.accounts.sessions import start_session
from larder.api_keys.keys import create_key, find_key
from larder.api_keys.models import ApiKey
from larder.api_keys.properties import NewKey
from larder.instance import restart
from larder.settings import settings
from larder.signing import sign
from tests.conftest import SetOption
from tests.default_template import template
from tests.faults import answering, error
from tests.functions.test_sample_events import sample
from tests.hooks import hooked
from tests.invocations import handed_over
from tests.permissions import RESOURCES, function_of, grants, policies
from tests.requests import SESSION_COOKIE, Cloud, invoke

HANDLERS = {route.function.logical_id: route.function.handler for route in template().routes}


def that_may(action: str, target: str) -> Callable[[Any], Any]:
    """Parametrize a test with the handlers of all functions that have a route and this permission."""
    found = {name: handler for name, handler in HANDLERS.items() if (action, target) in grants(name)}
    return pytest.mark.parametrize("handler", found.values(), ids=found)


BY_TOKEN = {"AuthenticateCaller", "VerifyToken"}
BY_SESSION = {"FindSession"}
LOOK_AT_KEYS = {
    name: handler
    for name, handler in HANDLERS.items()
    if (BY_TOKEN | BY_SESSION) & policies(name).keys() or name == "VerifyApiKey"
}

OF_THE_CACHE = {name: handler for name, handler in HANDLERS.items() if "AuthenticateCaller" in policies(name)}

where_a_key_is_looked_at = pytest.mark.parametrize("handler", LOOK_AT_KEYS.values(), ids=LOOK_AT_KEYS)


def by_key(handler: str, cloud: Cloud, token: str) -> dict[str, Any]:
    """The sample event with this key. It replaces the session where one is required."""
    event = sample(handler.split(".")[1], replace(cloud, token=token))
    shared = policies(function_of(handler)).keys()
    if shared & BY_TOKEN:
        event["headers"]["authorization"] = f"Bearer {token}"
    elif shared & BY_SESSION:
        event["headers"].pop("authorization", None)
        event["headers"]["x-api-key"] = token
    return event


@pytest.fixture(autouse=True)
def keys_stand_for_sessions(option: SetOption, aws_in_memory: None) -> Iterator[None]:
    """Also makes asynchronous invocations succeed."""
    option("session_for_api_keys", "true")
    with ExitStack() as stack:
        for function in template().functions:
            if "FunctionName" in RESOURCES[function.logical_id]["Properties"]:
                stack.enter_context(handed_over(function.name))
        yield


def make_key(cloud: Cloud, *, uses: int | None) -> tuple[ApiKey, str]:
    """A key with every permission and this number of uses."""
    new = NewKey(
        user_id=cloud.user.id,
        team_id=cloud.team.id,
        permissions={"artifacts": ("read", "write", "manage"), "teams": ("read", "write"), "trust": ("manage",)},
        remaining=uses,
    )
    return create_key(new, now=clock.now())


@where_a_key_is_looked_at
def test_a_use_of_the_key_is_counted(handler: str, cloud: Cloud) -> None:
    key, token = make_key(cloud, uses=2)
    invoke(handler, by_key(handler, cloud, token))
    left = find_key(key.id)
    # One of the functions deletes the key of the request.
    assert left is None or left.remaining == 1


@where_a_key_is_looked_at
def test_the_last_use_of_a_key_deletes_it(handler: str, cloud: Cloud) -> None:
    key, token = make_key(cloud, uses=1)
    invoke(handler, by_key(handler, cloud, token))
    assert find_key(key.id) is None


@where_a_key_is_looked_at
def test_a_key_is_accepted_if_its_use_cannot_be_recorded(handler: str, cloud: Cloud) -> None:
    event = by_key(handler, cloud, make_key(cloud, uses=None)[1])
    keys = settings().api_keys_table
    busy = error("ThrottlingException")
    # Some functions change other tables at the same time.
    with answering("dynamodb", "UpdateItem", busy, times=1, only=lambda sent: keys in str(sent["body"])) as refused:
        assert invoke(handler, event)["statusCode"] < 500
    assert refused


@pytest.mark.parametrize("handler", OF_THE_CACHE.values(), ids=OF_THE_CACHE)
def test_a_known_key_is_read_in_one_call(handler: str, cloud: Cloud) -> None:
    event = by_key(handler, cloud, make_key(cloud, uses=None)[1])
    invoke(handler, event)
    calls = []

    def note(params: dict[str, Any], event_name: str, **_: object) -> None:
        if settings().api_keys_table in str(params):
            calls.append(event_name.rpartition(".")[2])

    with hooked("provide-client-params.dynamodb", note, aws.dynamodb()):
        assert invoke(handler, event)["statusCode"] < 500
    assert calls == ["BatchGetItem"]


@that_may("secretsmanager:GetSecretValue", "SigningSecret")
def test_a_cookie_is_checked_on_an_instance_that_must_read_the_secret_first(handler: str, cloud: Cloud) -> None:
    event = sample(handler.split(".")[1], cloud)
    token = start_session(cloud.user, now=clock.now())[1]
    event["headers"].pop("authorization", None)
    event["headers"]["origin"] = f"https://{event['requestContext']['domainName']}"
    event["cookies"] = [f"{SESSION_COOKIE}={quote(f'{token}.{sign(token)}', safe='')}"]
    restart()
    assert invoke(handler, event)["statusCode"] < 500


@that_may("dynamodb:UpdateItem", "RateLimitsTable.Arn")
def test_a_request_counts_against_its_rate_limits(handler: str, cloud: Cloud, option: SetOption) -> None:
    option("http_rate_limit_enabled", "true")
    event = sample(handler.split(".")[1], cloud)
    invoke(handler, event)
    # An invitation also counts for the address, a change of address for the user, and a reported run for its user,
    # its owner and the deployment. A run that is shown only counts if it exists and is compared again.
    limits = {
        "teams.invite_members.handler": 2,
        "accounts.change_email.handler": 2,
        "usage.record_run.handler": 3,
        "usage.get_run.handler": 0,
    }.get(handler, 1)
    items = aws.dynamodb().scan(TableName=settings().rate_limits_table)["Items"]
    # Other items count wrong passwords.
    assert sum("request_count" in item for item in items) == limits
