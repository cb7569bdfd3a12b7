"""What a request costs when much is stored: as much as when little is.

Each request of the table is sent twice by one instance, with few artifacts, keys, members, sessions and events stored
and with many, and the capacity that the second one consumes is compared. `make capacity` runs it on AWS's DynamoDB
Local, which counts capacity as AWS does, at 100 and at 100,000 of each, and prints the table; the short form counts the
calls and the items that they bring on moto, whose capacity means nothing.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from threading import Lock
from typing import Any

import pytest

from larder import aws, clock
from larder.accounts.service import create_user
from larder.accounts.sessions import start_session
from larder.api_keys.models import NewKey
from larder.api_keys.service import create_key
from larder.conditions import begins_with, equals
from larder.hashing import random_id
from larder.settings import settings
from larder.tables import IDENTITY
from larder.teams.models import Role
from larder.teams.service import add_member
from tests.conftest import SetOption
from tests.hooks import hooked
from tests.requests import Browser, Cloud, Reply, Sender, browser_of

pytestmark = pytest.mark.slow

FEW = 100
MANY = int(os.environ.get("GROWTH_ITEMS", "500"))

PASSWORD = "correct horse battery staple"
HASH = "0123456789abcdef"
STORED = [f"{number:016x}" for number in range(100)]
EVENT = {
    "sessionId": "7ad1cf8e-9b4b-4c6a-8d36-6ea8b4e3a0b5",
    "source": "REMOTE",
    "event": "HIT",
    "hash": HASH,
    "duration": 100,
}
ANNOUNCED = {"access-control-request-method": "PUT", "user-agent": "turbo 2.11.11"}


@dataclass
class Cost:
    """What a request took of DynamoDB: its calls, the items that they brought or looked at, units of capacity."""

    calls: int = 0
    items: int = 0
    units: float = 0.0


@dataclass(frozen=True)
class People:
    """Who sends the requests of the table."""

    cloud: Cloud
    manage: Sender
    """The owner, by a session: the key of a build may not manage."""
    browser: Browser
    key_id: str

    @property
    def send(self) -> Sender:
        return self.cloud.send


Ask = Callable[[People], Reply]

REQUESTS: dict[str, Ask] = {
    "GET /v8/artifacts/{hash}, a hit": lambda by: by.send("GET", f"/v8/artifacts/{HASH}"),
    "GET /v8/artifacts/{hash}, a miss": lambda by: by.send("GET", "/v8/artifacts/beef"),
    "HEAD /v8/artifacts/{hash}": lambda by: by.send("HEAD", f"/v8/artifacts/{HASH}"),
    "PUT /v8/artifacts/{hash}": lambda by: by.send("PUT", f"/v8/artifacts/{HASH}", body=b"body"),
    "OPTIONS /v8/artifacts/{hash}": lambda by: by.send(
        "OPTIONS", f"/v8/artifacts/{random_id(16)}", headers=ANNOUNCED
    ),
    "POST /v8/artifacts, 100 hashes": lambda by: by.send(
        "POST", "/v8/artifacts", json_body={"hashes": STORED}
    ),
    "POST /v8/artifacts/events": lambda by: by.send(
        "POST", "/v8/artifacts/events", json_body=[EVENT]
    ),
    "GET /v8/artifacts/status": lambda by: by.send("GET", "/v8/artifacts/status"),
    "GET /v1/artifacts, a page": lambda by: by.manage("GET", "/v1/artifacts?limit=20"),
    "GET /v1/artifacts/{hash}": lambda by: by.manage("GET", f"/v1/artifacts/{HASH}"),
    "PUT /v1/artifacts/status": lambda by: by.manage(
        "PUT", "/v1/artifacts/status", json_body={"status": "enabled"}
    ),
    "DELETE /v1/artifacts?writer=": lambda by: by.manage(
        "DELETE", f"/v1/artifacts?writer={by.key_id}"
    ),
    "GET /v1/usage, 30 days": lambda by: by.send("GET", "/v1/usage"),
    "GET /v2/user": lambda by: by.send("GET", "/v2/user"),
    "GET /v2/teams, a page": lambda by: by.send("GET", "/v2/teams?limit=20"),
    "GET /v2/teams/{idOrSlug}": lambda by: by.send("GET", "/v2/teams/acme"),
    "PATCH /v2/teams/{idOrSlug}": lambda by: by.manage(
        "PATCH", "/v2/teams/acme", json_body={"name": "Acme"}
    ),
    "POST /v2/teams/{id}/members": lambda by: by.manage(
        "POST", "/v2/teams/acme/members", json_body={"email": "new@example.com", "role": "MEMBER"}
    ),
    "GET /v3/teams/{id}/members, a page": lambda by: by.manage(
        "GET", "/v3/teams/acme/members?limit=20"
    ),
    "GET /v5/user/tokens/current": lambda by: by.send("GET", "/v5/user/tokens/current"),
    "POST sign-in/email": lambda by: Browser().post(
        "/sign-in/email", {"email": by.cloud.user.email, "password": PASSWORD}
    ),
    "POST sign-up/email": lambda by: Browser().post(
        "/sign-up/email",
        {"email": f"{random_id(12)}@new.example", "name": "New", "password": PASSWORD},
    ),
    "GET get-session": lambda by: by.browser.get("/get-session"),
    "POST update-user": lambda by: by.browser.post("/update-user", {"name": "Ada"}),
    "POST api-key/create": lambda by: by.browser.post("/api-key/create", {"name": "ci"}),
    "GET api-key/get": lambda by: by.browser.get(f"/api-key/get?id={by.key_id}"),
    "POST api-key/update": lambda by: by.browser.post(
        "/api-key/update", {"keyId": by.key_id, "name": "renamed"}
    ),
    "POST api-key/verify": lambda by: by.browser.post("/api-key/verify", {"key": by.cloud.token}),
}


@pytest.fixture
def people(cloud: Cloud, mailbox: object, removal_jobs: object, option: SetOption) -> People:
    """Ada of the tests' team, with a password and a second key."""
    option("scrypt_cost", 1024)
    now = clock.now()
    ada = create_user("ada@growth.example", "Ada", password=PASSWORD, now=now)
    add_member(cloud.team.id, ada.id, Role.OWNER, now=now)
    key, token = create_key(NewKey(user_id=ada.id, team_id=cloud.team.id), now=now)
    session = start_session(ada, now=now)[1]
    return People(
        cloud=replace(cloud, user=ada, key=key, token=token, send=Sender(token, slug="acme")),
        manage=Sender(session, slug="acme"),
        browser=browser_of(ada, token=session),
        key_id=create_key(NewKey(user_id=ada.id), now=now)[0].id,
    )


def test_no_request_costs_more_when_much_is_stored(people: People, told: list[str]) -> None:
    stored = 0
    costs: dict[int, dict[str, Cost]] = {}
    for number in (FEW, MANY):
        grow(people, stored, number)
        stored = number
        costs[number] = {name: cost_of(ask, people) for name, ask in REQUESTS.items()}
    told.extend(table(costs[FEW], costs[MANY]))
    assert costs[MANY] == costs[FEW]


def grow(people: People, stored: int, number: int) -> None:
    """Have as many artifacts, keys, members, sessions and reported batches of the team and of Ada as `number`."""
    if not stored:
        for hash in (HASH, *STORED):
            people.send("PUT", f"/v8/artifacts/{hash}", body=b"body")
        people.send("POST", "/v8/artifacts/events", json_body=[EVENT])
    for table, key, varied in copies(people):
        reply = aws.dynamodb().get_item(TableName=table, Key=aws.serialize(key))
        item = aws.deserialize(reply["Item"])
        put_all(table, ({**item, **varied(n)} for n in range(stored, number)))


def copies(people: People) -> Iterator[tuple[str, aws.Item, Callable[[int], aws.Item]]]:
    """What to copy: the table, the key of an item, and what makes the copy of each number another one."""
    owner, user = people.cloud.team.id, people.cloud.user.id
    options = settings()
    today = clock.now().date().isoformat()
    batch, event = f"{today}#{0:028x}", {"owner": owner, "day": today}
    yield (
        options.artifacts_table,
        {"owner": owner, "hash": HASH},
        lambda n: {"hash": f"a{n:015x}", "upload_id": f"{n:028x}"},
    )
    yield (
        options.api_keys_table,
        {"key_hash": people.cloud.key.key_hash},
        lambda n: {"key_hash": f"hash-{n}", "id": f"key-{n}"},
    )
    yield (
        options.teams_table,
        {"pk": owner, "sk": f"member#{user}"},
        lambda n: {
            "sk": f"member#user{n}",
            "user_id": f"user{n}",
            "role": Role.MEMBER.value,
            "joined_at": n,
        },
    )
    yield (
        options.teams_table,
        {"pk": owner, "sk": f"member#{user}"},
        lambda n: {"pk": f"team_other{n}", "role": Role.MEMBER.value},
    )
    yield options.usage_table, event, lambda n: {"day": f"{batch}{n:08x}"}
    session = next(IDENTITY.query(equals(pk=user) & begins_with(sk="session#")))
    yield (
        options.identity_table,
        {"pk": user, "sk": session["sk"]},
        lambda n: {"sk": f"session#{n:064x}", "id": f"session-{n}"},
    )


def put_all(table: str, items: Iterator[aws.Item]) -> None:
    while some := list(islice(items, 25)):
        puts: list[Any] = [{"PutRequest": {"Item": aws.serialize(item)}} for item in some]
        reply = aws.dynamodb().batch_write_item(RequestItems={table: puts})
        assert not reply["UnprocessedItems"]


def cost_of(ask: Ask, people: People) -> Cost:
    """What the request takes of an instance that has answered it before."""
    assert ask(people).status < 500
    with measured() as cost:
        reply = ask(people)
    assert reply.status < 400 or reply.status == 404, reply
    return cost


@contextmanager
def measured() -> Iterator[Cost]:
    """Filled by the calls that are made while this is open."""
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
            cost.units += sum(one["CapacityUnits"] for one in of_tables)

    with (
        hooked("provide-client-params.dynamodb", ask_for_capacity, aws.dynamodb()),
        hooked("after-call.dynamodb", note, aws.dynamodb()),
    ):
        yield cost


def table(few: dict[str, Cost], many: dict[str, Cost]) -> Iterator[str]:
    yield f"{'request':34} {'calls':>6} {f'units at {FEW}':>14} {f'units at {MANY}':>16}"
    for name in REQUESTS:
        cells = f"{few[name].calls:6} {few[name].units:14.1f} {many[name].units:16.1f}"
        yield f"{name:34} {cells}"
