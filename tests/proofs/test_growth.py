"""Requests cost the same with much stored data as with little.

One instance sends each request of the table twice, with few stored artifacts, keys, members, sessions and events and
with many. The test compares the capacity of the second request. `make capacity` runs it on AWS's DynamoDB Local, which
counts capacity as AWS does, with 100 and with 100,000 of each, and prints the table. The short form uses moto and
counts the calls and the items that they return, because moto does not count capacity as AWS does.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import pytest

from larder import aws, clock
from larder.accounts.service import create_user
from larder.accounts.sessions import start_session
from larder.api_keys.keys import create_key
from larder.api_keys.properties import NewKey
from larder.artifacts.repository.table import partition_of
from larder.conditions import begins_with, equals
from larder.hashing import random_id
from larder.settings import settings
from larder.tables import IDENTITY, USAGE, Item
from larder.teams.members import add_member
from larder.teams.models import Role
from larder.usage.repository import PARTS
from tests.bulk import put_all
from tests.catalogue import Names, valid
from tests.conftest import SetOption
from tests.hooks import hooked
from tests.requests import Cloud, Reply, Sender

pytestmark = pytest.mark.slow

FEW = 100
MANY = int(os.environ.get("GROWTH_ITEMS", "250"))

PASSWORD = "correct horse battery staple"
HASH = "0123456789abcdef"
STORED = [f"{number:016x}" for number in range(100)]


@dataclass
class Cost:
    """A request's calls to DynamoDB, the items that they returned or read, and the units of capacity."""

    calls: int = 0
    items: int = 0
    units: float = 0.0


@dataclass(frozen=True)
class People:
    """The callers of the requests in the table."""

    cloud: Cloud
    manage: Sender
    """The owner with a session, because the key of a build cannot manage teams."""
    names: Names


REQUESTS: dict[str, dict[str, Any]] = {
    "GET /v8/artifacts/{hash}, a hit": {},
    "GET /v8/artifacts/{hash}, a miss": {"path": "/v8/artifacts/beef"},
    "HEAD /v8/artifacts/{hash}": {},
    "PUT /v8/artifacts/{hash}": {},
    "OPTIONS /v8/artifacts/{hash}": {},
    "POST /v8/artifacts, 100 hashes": {"json": {"hashes": STORED}},
    "POST /v8/artifacts/events": {},
    "GET /v8/artifacts/status": {},
    "GET /v1/artifacts, a page": {"query": "limit=20"},
    "GET /v1/artifacts/{hash}": {},
    "PUT /v1/artifacts/status": {},
    "DELETE /v1/artifacts": {},
    "GET /v1/usage, 30 days": {"query": ""},
    "GET /v2/user": {},
    "GET /v2/teams, a page": {"query": "limit=20"},
    "GET /v2/teams/{idOrSlug}": {},
    "PATCH /v2/teams/{idOrSlug}": {"json": {"name": "Acme"}},
    "POST /v2/teams/{idOrSlug}/members": {},
    "GET /v3/teams/{idOrSlug}/members, a page": {"query": "limit=20"},
    "GET /v5/user/tokens/current": {},
    "POST /api/auth/sign-in/email": {},
    "POST /api/auth/sign-up/email": {},
    "GET /api/auth/get-session": {},
    "GET /api/auth/console": {},
    "POST /api/auth/update-user": {},
    "POST /api/auth/api-key/create": {},
    "GET /api/auth/api-key/get": {},
    "POST /api/auth/api-key/update": {},
    "POST /api/auth/api-key/verify": {},
}
"""The requests, and what each changes in the request of the catalogue."""


def ask(name: str, people: People) -> Reply:
    operation = name.partition(",")[0]
    names = people.names
    if operation.endswith("sign-up/email"):
        names = replace(names, email=f"{random_id(12)}@new.example")
    if operation.startswith("OPTIONS"):
        names = replace(names, hash=random_id(16))
    request = replace(valid(operation, names), **REQUESTS[name])
    return request(people.manage if request.by == "session" else people.cloud.send)


@pytest.fixture
def people(cloud: Cloud, mailbox: object, removal_jobs: object, option: SetOption) -> People:
    """The people of the tests, where Ada has a password and a second key."""
    option("scrypt_cost", 1024)
    now = clock.now()
    ada = create_user("ada@growth.example", "Ada", password=PASSWORD, now=now)
    add_member(cloud.team.id, ada.id, Role.OWNER, now=now)
    key, token = create_key(NewKey(user_id=ada.id, team_id=cloud.team.id), now=now)
    session = start_session(ada, now=now)[1]
    return People(
        cloud=replace(cloud, user=ada, key=key, token=token, send=Sender(token, slug="acme")),
        manage=Sender(session, slug="acme"),
        names=Names(
            hash=HASH,
            email=ada.email,
            password=PASSWORD,
            key=token,
            key_id=create_key(NewKey(user_id=ada.id), now=now)[0].id,
            caching="enabled",
        ),
    )


@pytest.mark.thorough
def test_no_request_costs_more_with_much_stored_data(people: People, report_lines: list[str]) -> None:
    stored = 0
    costs: dict[int, dict[str, Cost]] = {}
    for number in (FEW, MANY):
        grow(people, stored, number)
        stored = number
        costs[number] = {name: cost_of(name, people) for name in REQUESTS}
    report_lines.extend(table(costs[FEW], costs[MANY]))
    assert costs[MANY] == costs[FEW]


def grow(people: People, stored: int, number: int) -> None:
    """Store `number` artifacts, keys, members, sessions and batches of events for the team and for Ada."""
    if not stored:
        for hash in (HASH, *STORED):
            valid("PUT /v8/artifacts/{hash}", hash=hash)(people.cloud.send)
        # A day has at most so many parts. Reading it costs the same once it has all.
        while len(parts_of_today(people)) < PARTS:
            valid("POST /v8/artifacts/events")(people.cloud.send)
    for table, key, varied in copies(people):
        reply = aws.dynamodb().get_item(TableName=table, Key=aws.serialize(key))
        item = aws.deserialize(reply["Item"])
        put_all(table, ({**item, **varied(n)} for n in range(stored, number)))


def parts_of_today(people: People) -> list[Item]:
    day = f"day#{clock.now().date().isoformat()}#"
    return list(USAGE.query(equals(owner=people.cloud.team.id) & begins_with(day=day)))


def copies(people: People) -> Iterator[tuple[str, aws.Item, Callable[[int], aws.Item]]]:
    """The items to copy: the table, the key of an item, and the attributes that differ in each copy."""
    owner, user = people.cloud.team.id, people.cloud.user.id
    options = settings()
    today = clock.now().date().isoformat()
    reported = next(USAGE.query(equals(owner=owner) & begins_with(day=f"{today}#")))
    batch, event = f"{today}#{0:028x}", {"owner": owner, "day": reported["day"]}
    yield (
        options.artifacts_table,
        {"owner": partition_of(owner, HASH), "hash": HASH},
        lambda n: {"owner": partition_of(owner, f"a{n:015x}"), "hash": f"a{n:015x}", "upload_id": f"{n:028x}"},
    )
    yield (
        options.api_keys_table,
        {"key_hash": people.cloud.key.key_hash},
        lambda n: {"key_hash": f"hash-{n:06}", "id": f"key-{n:06}"},
    )
    yield (
        options.teams_table,
        {"pk": owner, "sk": f"member#{user}"},
        lambda n: {"sk": f"member#user{n:06}", "user_id": f"user{n:06}", "role": Role.MEMBER.value, "joined_at": n},
    )
    yield (
        options.teams_table,
        {"pk": owner, "sk": f"member#{user}"},
        lambda n: {"pk": f"team_other{n:06}", "role": Role.MEMBER.value},
    )
    yield options.usage_table, event, lambda n: {"day": f"{batch}{n:08x}"}
    session = next(IDENTITY.query(equals(pk=user) & begins_with(sk="session#")))
    yield (
        options.identity_table,
        {"pk": user, "sk": session["sk"]},
        lambda n: {"sk": f"session#{n:064x}", "id": f"session-{n:06}"},
    )


def cost_of(name: str, people: People) -> Cost:
    """The units of the request on an instance that has handled it before."""
    assert ask(name, people).status < 500
    with measured() as cost:
        reply = ask(name, people)
    assert reply.status < 400 or reply.status == 404, reply
    return cost


@contextmanager
def measured() -> Iterator[Cost]:
    """A context that records its calls."""
    cost = Cost()
    lock = Lock()

    def ask_for_capacity(params: dict[str, Any], **_: object) -> None:
        params["ReturnConsumedCapacity"] = "TOTAL"

    def note(parsed: dict[str, Any], **_: object) -> None:
        capacity = parsed.get("ConsumedCapacity", [])
        of_tables = [capacity] if isinstance(capacity, dict) else capacity
        batches = parsed.get("Responses", {})
        brought = [len(items) for items in batches.values()] if isinstance(batches, dict) else []
        with lock:
            cost.calls += 1
            cost.items += parsed.get("ScannedCount", 0) + sum(brought) + ("Item" in parsed)
            cost.units += sum(table["CapacityUnits"] for table in of_tables)

    with (
        hooked("provide-client-params.dynamodb", ask_for_capacity, aws.dynamodb()),
        hooked("after-call.dynamodb", note, aws.dynamodb()),
    ):
        yield cost


def table(few: dict[str, Cost], many: dict[str, Cost]) -> Iterator[str]:
    yield f"{'request':42} {'calls':>6} {f'units at {FEW}':>14} {f'units at {MANY}':>16}"
    for name in REQUESTS:
        cells = f"{few[name].calls:6} {few[name].units:14.1f} {many[name].units:16.1f}"
        yield f"{name:42} {cells}"
