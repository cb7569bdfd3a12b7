"""How many times a request waits for AWS: sequential round trips, where parallel calls count once.

The limit is 2 for status and a hit of GET or HEAD, 3 for OPTIONS, query and usage, and 4 for PUT and events. No request
scans. A *warm* request goes to an instance that has seen the same key and team before. A *cold* one is the first. The
counts are exact, so the tests notice a call more or less.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from threading import Barrier

import pytest

from larder import aws, clock
from larder.accounts.sessions import start_session
from larder.api_keys.keys import create_key, revoke_key
from larder.api_keys.models import FETCHES_ONLY, TRUST, Daily
from larder.api_keys.properties import NewKey
from larder.artifacts.models import Artifact, ArtifactHash, Upload
from larder.artifacts.repository import index
from larder.artifacts.repository.index import read_entry
from larder.concurrency import submit
from larder.hashing import time_ordered_id
from larder.instance import restart
from larder.settings import settings
from larder.teams.protection import ProtectionChange, change_protection
from larder.teams.state import change_state
from larder.teams.teams import create_team
from larder.trust.models import NewRule
from larder.trust.rules import create_rule
from tests.catalogue import valid
from tests.conftest import BeginWith, SetOption
from tests.direct_uploads import PREFLIGHT, announce, offer, put_object, upload, versions_of
from tests.hooks import hooked
from tests.issuer import ORIGIN, Issuer, github_claims
from tests.proofs.aws_calls import Calls, counted
from tests.requests import Cloud, Reply, Sender
from tests.trust.exchanging import exchange

SMALL = b"small artifact"
MEDIUM = SMALL * 200
LARGER = SMALL * 3_000
LARGE = SMALL * 30_000
EVENT = valid("POST /v8/artifacts/events", hash="small").json[0]
HASHES = [f"absent{number}" for number in range(200)]

Request = Callable[[Sender], Reply]
Identity = Callable[[Cloud], Sender]

REQUESTS: dict[str, Request] = {
    "GET small": valid("GET /v8/artifacts/{hash}", hash="small"),
    "GET next to the index": valid("GET /v8/artifacts/{hash}", hash="medium"),
    "GET inline": valid("GET /v8/artifacts/{hash}", hash="larger"),
    "GET redirect": valid("GET /v8/artifacts/{hash}", hash="large"),
    "GET miss": valid("GET /v8/artifacts/{hash}", hash="absent"),
    "HEAD": valid("HEAD /v8/artifacts/{hash}", hash="small"),
    "HEAD miss": valid("HEAD /v8/artifacts/{hash}", hash="absent"),
    "status": valid("GET /v8/artifacts/status"),
    "query of 1": lambda send: send("POST", "/v8/artifacts", json_body={"hashes": ["small"]}),
    "query of 200": lambda send: send("POST", "/v8/artifacts", json_body={"hashes": HASHES}),
    "events": lambda send: send("POST", "/v8/artifacts/events", json_body=[EVENT] * 80),
    "usage of 30 days": lambda send: send("GET", "/v1/usage"),
    "OPTIONS for PUT": valid("OPTIONS /v8/artifacts/{hash}", hash="new"),
    "OPTIONS for GET": lambda send: send("OPTIONS", "/v8/artifacts/small"),
    "OPTIONS elsewhere": valid("OPTIONS /v8/artifacts/events"),
    "PUT new": valid("PUT /v8/artifacts/{hash}", hash="new"),
    "PUT replacing": valid("PUT /v8/artifacts/{hash}", hash="small"),
}
BARS = {"GET": 2, "HEAD": 2, "status": 2, "query": 3, "events": 4, "usage": 3, "OPTIONS": 3, "PUT": 4}
ABOVE_THE_BAR = {(name, "cold") for name in ("GET inline", "GET miss", "HEAD miss", "query of 200")}
"""A new instance needs the key to find the owner, and the owner to find the object: three steps that cannot run in
parallel. Only a miss reads the upload that is offered for the hash, after the artifact."""

# request -> round trips warm, cold
TRIPS: dict[str, tuple[int, int]] = {
    "GET small": (1, 2),
    "GET next to the index": (1, 2),
    "GET inline": (2, 3),
    "GET redirect": (1, 2),
    "GET miss": (2, 3),
    "HEAD": (1, 2),
    "HEAD miss": (2, 3),
    "status": (1, 2),
    "query of 1": (2, 3),
    "query of 200": (3, 4),
    "events": (3, 4),
    "usage of 30 days": (2, 3),
    "OPTIONS for PUT": (2, 3),
    "OPTIONS for GET": (0, 0),
    "OPTIONS elsewhere": (0, 0),
    "PUT new": (3, 4),
    "PUT replacing": (3, 4),
}
OVERTAKEN = 2
"""The additional round trips of a PUT if the event of its object publishes it first: read the entry, and take back the
second count. This happens only if events arrive within milliseconds."""

SUCCESS = {
    "GET redirect": 302,
    "GET miss": 404,
    "HEAD miss": 404,
    "OPTIONS for PUT": 204,
    "OPTIONS for GET": 204,
    "OPTIONS elsewhere": 204,
    "PUT new": 202,
    "PUT replacing": 202,
}
IDENTITIES: dict[str, Identity] = {
    "slug": lambda cloud: Sender(cloud.token, slug=cloud.team.slug),
    "teamId": lambda cloud: Sender(cloud.token, team_id=cloud.team.id),
    "neither": lambda cloud: Sender(cloud.token),
    "CI job, slug": lambda cloud: Sender(ci_token(cloud), slug=cloud.team.slug),
    "session, slug": lambda cloud: Sender(session_token(cloud), slug=cloud.team.slug),
    "session, teamId": lambda cloud: Sender(session_token(cloud), team_id=cloud.team.id),
}


def ci_token(cloud: Cloud, **claims: str) -> str:
    """The token of a CI job. The batch reads its rule in place of a member and the user."""
    pinned = {"repository_id": "74", "repository_owner_id": "65"}
    new = NewRule(provider="github", pinned=pinned)
    create_rule(cloud.team.id, new, by=None, origin=ORIGIN, now=clock.now())
    issuer = Issuer()
    issuer.publish()
    reply = exchange(issuer.mint(github_claims(**claims)))
    restart()
    return str(reply.json["access_token"])


def public_key(cloud: Cloud) -> Sender:
    """A sender with a public read key."""
    daily = Daily(max_requests=10_000, max_bytes=10**9)
    new = NewKey(user_id=None, team_id=cloud.team.id, permissions=FETCHES_ONLY, daily=daily)
    return Sender(create_key(new, now=clock.now())[1], slug=cloud.team.slug)


def session_token(cloud: Cloud) -> str:
    return start_session(cloud.user, now=clock.now())[1]


@pytest.fixture
def stored(begin_with: BeginWith, cloud: Cloud) -> Cloud:
    """A cloud with a small and a large artifact, and a new instance."""
    return begin_with(with_artifacts, cloud)


def with_artifacts(cloud: Cloud) -> Cloud:
    put(cloud, "small", SMALL)
    put(cloud, "medium", MEDIUM)
    put(cloud, "larger", LARGER)
    put(cloud, "large", LARGE)
    return cloud


def put(cloud: Cloud, hash: str, body: bytes, *, now: datetime | None = None) -> None:
    cloud.store(hash, body, now=now)


def publish(cloud: Cloud, hash: str) -> None:
    """Add one artifact to the index, without an object or totals."""
    upload = Upload(owner=cloud.team.id, hash=ArtifactHash(hash), id=time_ordered_id(clock.now()))
    artifact = Artifact(upload=upload, size_bytes=1, created_at=clock.now())
    assert index.publish(artifact, replaces=None, now=clock.now())


def measure(request: Callable[[], object]) -> Calls:
    """Record the calls of one request. Fails if it scans."""
    with counted() as calls:
        request()
    assert all(call.operation != "Scan" for call in calls.made)
    return calls


def warm_up(send: Sender) -> None:
    assert send("GET", "/v8/artifacts/status").status == 200


@pytest.mark.parametrize(
    ("name", "heat", "identity"),
    [
        # `make test` tries each request with every third identity, so each meets requests of every kind.
        pytest.param(name, heat, identity, marks=[] if (number - place) % 3 == 0 else pytest.mark.slow)
        for number, name in enumerate(REQUESTS)
        for heat in ("warm", "cold")
        for place, identity in enumerate(IDENTITIES)
    ],
)
def test_sequential_round_trips(name: str, heat: str, identity: str, stored: Cloud) -> None:
    send = IDENTITIES[identity](stored)
    if heat == "warm":
        warm_up(send)
    replies: list[Reply] = []
    calls = measure(lambda: replies.append(REQUESTS[name](send)))
    assert replies[0].status == SUCCESS.get(name, 200), replies[0].body
    assert calls.sequential == TRIPS[name][heat == "cold"], calls.steps


@pytest.mark.parametrize("heat", ["warm", "cold"])
@pytest.mark.parametrize("name", [name for name in REQUESTS if name.startswith(("GET", "HEAD", "query"))])
def test_a_public_read_key_takes_one_write_more(name: str, heat: str, stored: Cloud) -> None:
    send = public_key(stored)
    if heat == "warm":
        warm_up(send)
    calls = measure(lambda: REQUESTS[name](send))
    more = [call.operation for call in calls.made].count("UpdateItem")
    # It has no redirect: the function reads a large body from the bucket.
    redirected = name == "GET redirect"
    # An instance that does not know it records its last use in the background.
    assert more in (1, 2)
    assert calls.sequential == TRIPS[name][heat == "cold"] + 1 + redirected, calls.steps


def trusted_key(cloud: Cloud) -> str:
    permissions = {"artifacts": ("read", "write", TRUST)}
    return create_key(NewKey(user_id=cloud.user.id, permissions=permissions), now=clock.now())[1]


def pull_request_token(cloud: Cloud) -> str:
    return ci_token(cloud, event_name="pull_request", ref="refs/pull/7/merge")


TRUSTED_TOKENS: dict[str, Callable[[Cloud], str]] = {"key": trusted_key, "CI job": ci_token}
OTHER_TOKENS: dict[str, Callable[[Cloud], str]] = {"key": lambda cloud: cloud.token, "CI job": pull_request_token}


PROTECTED = [
    (name, heat, trusted, token)
    for number, name in enumerate(REQUESTS)
    for heat in ("warm", "cold")
    # Each pair of values occurs, and each request has all of them.
    for trusted, token in zip((True, False), ("key", "CI job") if number % 2 else ("CI job", "key"), strict=True)
]


@pytest.mark.parametrize(("name", "heat", "trusted", "token"), PROTECTED)
def test_sequential_round_trips_in_a_protected_team(
    name: str, heat: str, trusted: bool, token: str, stored: Cloud
) -> None:
    change = ProtectionChange(protected=True, keep_stored=True)
    change_protection(stored.team.id, change, by=None)
    tokens = TRUSTED_TOKENS if trusted else OTHER_TOKENS
    send = Sender(tokens[token](stored), slug=stored.team.slug)
    if heat == "warm":
        warm_up(send)
    replies: list[Reply] = []
    calls = measure(lambda: replies.append(REQUESTS[name](send)))
    assert replies[0].status == SUCCESS.get(name, 200), replies[0].body
    trips = TRIPS[name]
    if name == "PUT replacing":
        # The shared scope has it, so nothing is stored. A trusted upload that differs marks what is there.
        trips = (2, 3) if trusted else (1, 2)
    assert calls.sequential == trips[heat == "cold"], calls.steps


@pytest.mark.slow
@pytest.mark.parametrize("heat", ["warm", "cold"])
@pytest.mark.parametrize("name", REQUESTS)
def test_sequential_round_trips_on_the_local_cloud(name: str, heat: str, new_team: Cloud) -> None:
    with_artifacts(new_team)
    trips = TRIPS[name][heat == "cold"]
    allowed = {trips, trips + OVERTAKEN} if name.startswith("PUT") else {trips}
    if heat == "warm":
        warm_up(new_team.send)
    replies: list[Reply] = []
    calls = measure(lambda: replies.append(REQUESTS[name](new_team.send)))
    assert replies[0].status == SUCCESS.get(name, 200), replies[0].body
    assert calls.sequential in allowed, calls.steps


@pytest.mark.parametrize("heat", ["warm", "cold"])
@pytest.mark.parametrize("name", REQUESTS)
def test_only_a_cold_inline_get_exceeds_the_limits(name: str, heat: str) -> None:
    bar = BARS[name.split(maxsplit=1)[0]]
    over = TRIPS[name][heat == "cold"] - bar
    assert over <= 0 or (name, heat) in ABOVE_THE_BAR
    assert over <= 1


@dataclass(frozen=True)
class Refused:
    """A request that gets an error, with its warm and cold round trips.

    The second one of a valid key without limits is the record of its use. Other requests make it together with the
    batch.
    """

    status: int
    warm: int
    cold: int
    send: Callable[[Cloud], Reply]


REFUSED: dict[str, Refused] = {
    "no token": Refused(401, 0, 0, lambda cloud: Sender(None)("GET", "/v8/artifacts/small")),
    "malformed token": Refused(401, 0, 0, lambda cloud: Sender("no")("GET", "/v8/artifacts/small")),
    "unknown key": Refused(401, 1, 1, lambda cloud: Sender("k" * 64, slug="acme")("GET", "/v8/artifacts/small")),
    "unknown session": Refused(401, 1, 1, lambda cloud: Sender("s" * 32, slug="acme")("GET", "/v8/artifacts/small")),
    "malformed hash": Refused(400, 0, 0, lambda cloud: cloud.send("HEAD", "/v8/artifacts/a%2Fb")),
    "malformed team": Refused(
        403, 0, 0, lambda cloud: Sender(cloud.token, query="teamId=x")("GET", "/v8/artifacts/status")
    ),
    "malformed query": Refused(400, 0, 0, lambda cloud: cloud.send("POST", "/v8/artifacts", json_body={"hashes": 1})),
    "malformed events": Refused(400, 0, 0, lambda cloud: cloud.send("POST", "/v8/artifacts/events", json_body=[{}])),
    "malformed tag": Refused(
        400, 0, 0, lambda cloud: cloud.send("PUT", "/v8/artifacts/new", body=SMALL, headers={"x-artifact-tag": "é"})
    ),
    "empty upload": Refused(400, 0, 0, lambda cloud: cloud.send("PUT", "/v8/artifacts/new")),
    "slug of no team": Refused(
        403, 1, 2, lambda cloud: Sender(cloud.token, slug="nobody")("GET", "/v8/artifacts/small")
    ),
    "team that the key is not bound to": Refused(
        403, 1, 2, lambda cloud: Sender(cloud.token, team_id="team_x")("GET", "/v8/artifacts/small")
    ),
}


@pytest.mark.parametrize("heat", ["warm", "cold"])
@pytest.mark.parametrize("name", REFUSED)
def test_round_trips_of_a_refused_request(name: str, heat: str, stored: Cloud) -> None:
    refused = REFUSED[name]
    if heat == "warm":
        warm_up(stored.send)
    replies: list[Reply] = []
    calls = measure(lambda: replies.append(refused.send(stored)))
    assert replies[0].status == refused.status, replies[0].body
    assert calls.sequential == (refused.warm if heat == "warm" else refused.cold), calls.steps


@pytest.mark.parametrize(("heat", "trips"), [("warm", 1), ("cold", 1)])
def test_a_write_with_a_reading_key_is_refused_after_the_key(heat: str, trips: int, stored: Cloud) -> None:
    new = NewKey(user_id=stored.user.id, permissions={"artifacts": ("read",)})
    send = Sender(create_key(new, now=clock.now())[1], slug="acme")
    if heat == "warm":
        warm_up(send)
    replies: list[Reply] = []
    calls = measure(lambda: replies.append(send("PUT", "/v8/artifacts/new", body=SMALL)))
    assert (replies[0].status, replies[0].code) == (403, "read_only")
    assert calls.sequential == trips, calls.steps


def test_a_stranger_is_refused_after_the_key_and_the_batch(stranger: Sender) -> None:
    replies: list[Reply] = []
    for _ in range(2):
        calls = measure(lambda: replies.append(stranger("GET", "/v8/artifacts/small")))
        # Larder does not cache a refusal, so the second one costs the same.
        assert calls.sequential == 2, calls.steps
    assert {(reply.status, reply.code) for reply in replies} == {(403, "not_a_team_member")}


def test_a_revoked_known_key_is_refused_in_one_round_trip(stored: Cloud) -> None:
    warm_up(stored.send)
    assert revoke_key(stored.key)
    replies: list[Reply] = []
    calls = measure(lambda: replies.append(stored.send("GET", "/v8/artifacts/small")))
    assert replies[0].status == 401
    assert calls.sequential == 1, calls.steps


MANAGED: dict[str, tuple[int, int, Request]] = {
    "list": (2, 3, valid("GET /v1/artifacts")),
    "inspect": (1, 2, valid("GET /v1/artifacts/{hash}", hash="small")),
    "delete": (3, 4, valid("DELETE /v1/artifacts/{hash}", hash="small")),
    "delete nothing": (2, 3, valid("DELETE /v1/artifacts/{hash}", hash="absent")),
}
"""A manager's request, with its warm and cold round trips."""


@pytest.mark.parametrize("heat", ["warm", "cold"])
@pytest.mark.parametrize("name", MANAGED)
def test_round_trips_of_a_manager(name: str, heat: str, stored: Cloud, manage: Sender) -> None:
    warm, cold, request = MANAGED[name]
    if heat == "warm":
        warm_up(manage)
    replies: list[Reply] = []
    calls = measure(lambda: replies.append(request(manage)))
    assert replies[0].status == 200, replies[0].body
    assert calls.sequential == (warm if heat == "warm" else cold), calls.steps


EVICTING: dict[str, tuple[int, Request]] = {
    "GET redirect": (1, lambda send: send("GET", "/v8/artifacts/large")),
    "GET redirect, first use of the day": (2, lambda send: send("GET", "/v8/artifacts/old-large")),
    "GET small": (1, lambda send: send("GET", "/v8/artifacts/small")),
    "GET small, first use of the day": (2, lambda send: send("GET", "/v8/artifacts/old-small")),
    "GET inline": (2, lambda send: send("GET", "/v8/artifacts/larger")),
    "GET inline, first use of the day": (2, lambda send: send("GET", "/v8/artifacts/old-larger")),
    "HEAD": (1, lambda send: send("HEAD", "/v8/artifacts/small")),
    "HEAD, first use of the day": (2, lambda send: send("HEAD", "/v8/artifacts/old-small")),
    "status": (1, lambda send: send("GET", "/v8/artifacts/status")),
    "query": (2, lambda send: send("POST", "/v8/artifacts", json_body={"hashes": ["old-small"]})),
    "OPTIONS for PUT": (2, lambda send: send("OPTIONS", "/v8/artifacts/new", headers=PREFLIGHT)),
    "PUT new": (3, lambda send: send("PUT", "/v8/artifacts/new", body=SMALL)),
    "PUT replacing": (3, lambda send: send("PUT", "/v8/artifacts/small", body=SMALL)),
    # One more call checks that no other request has started an eviction, and one to Lambda starts it.
    "PUT passing 95 %": (4, lambda send: send("PUT", "/v8/artifacts/new", body=SMALL * 10_000)),
    # Count in fails; read the totals and the least recently used artifact; evict it; count in.
    "PUT when it is full": (6, lambda send: send("PUT", "/v8/artifacts/new", body=SMALL * 20_000)),
}
"""The round trips on a warm instance of a deployment that evicts, for any amount of stored data."""


@pytest.mark.parametrize("stored_too", [0, pytest.param(150, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", EVICTING)
def test_round_trips_of_a_deployment_that_evicts(
    name: str, stored_too: int, cloud: Cloud, option: SetOption, removal_jobs: list[object]
) -> None:
    option("over_quota", "evict")
    change_state(cloud.team.id, quota_bytes=1_078_000)
    put(cloud, "old-small", SMALL, now=clock.now() - timedelta(days=2))
    put(cloud, "old-larger", LARGER, now=clock.now() - timedelta(days=2))
    put(cloud, "old-large", LARGE, now=clock.now() - timedelta(days=2))
    for number in range(stored_too):
        publish(cloud, f"other{number}")
    with_artifacts(cloud)
    trips, request = EVICTING[name]
    warm_up(cloud.send)
    replies: list[Reply] = []
    calls = measure(lambda: replies.append(request(cloud.send)))
    assert replies[0].status < 400, replies[0].body
    assert calls.sequential == trips, calls.steps
    assert len(removal_jobs) == ("95" in name)


PUBLISHING = 3
"""The additional round trips to publish a finished direct upload: read the object, count it in, publish it."""

KEEPING_THE_BODY = 1
"""The additional round trip if it is small: read its body, to store it in the index."""

FINDING_THE_OFFER = 1
"""The additional round trip of a miss, and of a hit that an offered upload may replace."""

LOOKING = 1
"""The additional round trip to find that an upload has not arrived."""


@pytest.mark.parametrize(
    ("body", "trips", "fetched"),
    [(LARGE, PUBLISHING, 302), (SMALL, PUBLISHING + KEEPING_THE_BODY, 200)],
    ids=["large", "small"],
)
@pytest.mark.parametrize("hash", ["direct", "small"], ids=["new", "replacing"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_the_first_reader_of_a_direct_upload_publishes_it(
    method: str, hash: str, body: bytes, trips: int, fetched: int, stored: Cloud
) -> None:
    def request_(send: Sender) -> Reply:
        return send(method, f"/v8/artifacts/{hash}")

    key = offer(stored.send, hash)
    replies: list[Reply] = []
    waiting = measure(lambda: replies.append(request_(stored.send)))
    assert replies[-1].status == (404 if hash == "direct" else 200)
    assert waiting.sequential == 1 + FINDING_THE_OFFER + LOOKING, waiting.steps
    put_object(key, body)
    publishing = measure(lambda: replies.append(request_(stored.send)))
    assert replies[-1].status == (fetched if method == "GET" else 200)
    assert publishing.sequential == 1 + FINDING_THE_OFFER + trips, publishing.steps
    published = measure(lambda: replies.append(request_(stored.send)))
    assert published.sequential == 1, published.steps


def test_a_query_publishes_direct_uploads_in_parallel(stored: Cloud) -> None:
    hashes = [f"direct{number}" for number in range(4)]
    for hash in hashes:
        upload(stored.send, hash, LARGE)
    calls = measure(lambda: stored.send("POST", "/v8/artifacts", json_body={"hashes": hashes}))
    assert all(read_entry(stored.team.id, ArtifactHash(hash)).artifact for hash in hashes)
    # Single writes to the owner's totals do not wait for each other.
    assert calls.sequential == 2 + FINDING_THE_OFFER + PUBLISHING, calls.steps


@pytest.mark.parametrize("token", TRUSTED_TOKENS)
def test_the_trust_in_a_writer_is_checked_while_the_object_is_looked_up(token: str, stored: Cloud) -> None:
    change = ProtectionChange(protected=True, keep_stored=True)
    change_protection(stored.team.id, change, by=None)
    main = Sender(TRUSTED_TOKENS[token](stored), slug=stored.team.slug)
    hashes = ["read", "queried", "announced"]
    keys = [upload(main, hash, LARGE) for hash in hashes]
    warm_up(stored.send)
    first = measure(lambda: stored.send("GET", "/v8/artifacts/read"))
    assert first.sequential == 1 + FINDING_THE_OFFER + PUBLISHING, first.steps
    query = {"hashes": ["queried"]}
    queried = measure(lambda: stored.send("POST", "/v8/artifacts", json_body=query))
    assert queried.sequential == 2 + FINDING_THE_OFFER + PUBLISHING, queried.steps
    event = partial(announce, keys[-1], version=versions_of(keys[-1])[0].id)
    assert measure(event).sequential == 2 + PUBLISHING
    assert all(read_entry(stored.team.id, ArtifactHash(hash)).artifact for hash in hashes)


def test_the_event_of_an_upload_publishes_it_once(stored: Cloud) -> None:
    key = upload(stored.send, "direct", LARGE)
    # Read the upload's entry and the owner's quota, then publish as a reader would.
    event = partial(announce, key, version=versions_of(key)[0].id)
    assert measure(event).sequential == 2 + PUBLISHING
    assert measure(event).sequential == 2


def test_a_slug_that_moved_to_another_team_costs_two_more_round_trips_once(stored: Cloud) -> None:
    send = Sender(create_key(NewKey(user_id=stored.user.id), now=clock.now())[1], slug="acme")
    warm_up(send)
    other = create_team("Other", "other", owner_user_id=stored.user.id, now=clock.now())
    set_slug(stored.team.id, "was-acme")
    set_slug(other.id, "acme")
    calls = measure(lambda: send("GET", "/v8/artifacts/status"))
    assert calls.steps == [["BatchGetItem"], ["GetItem"], ["BatchGetItem"]]
    assert measure(lambda: send("GET", "/v8/artifacts/status")).sequential == 1


def set_slug(team_id: str, slug: str) -> None:
    """Rename a team without the layer."""
    table = settings().teams_table
    claim = {"pk": f"slug#{slug}", "sk": "slug", "team_id": team_id}
    aws.dynamodb().put_item(TableName=table, Item=aws.serialize(claim))
    aws.dynamodb().update_item(
        TableName=table,
        Key=aws.serialize({"pk": team_id, "sk": "team"}),
        UpdateExpression="SET slug = :slug",
        ExpressionAttributeValues=aws.serialize({":slug": slug}),
    )


def test_parallel_calls_count_once_and_sequential_calls_count_each(stored: Cloud) -> None:
    def read() -> None:
        read_entry(stored.team.id, ArtifactHash("small"))

    with counted() as calls:
        other = submit(read)
        read()
        other.result()
        read()
    assert calls.steps == [["BatchGetItem", "BatchGetItem"], ["BatchGetItem"]]


ONE_BATCH = ["GET small", "GET next to the index", "GET redirect", "HEAD", "status"]


@pytest.mark.parametrize("identity", IDENTITIES)
@pytest.mark.parametrize("name", ONE_BATCH)
def test_a_warm_request_makes_one_call(name: str, identity: str, stored: Cloud) -> None:
    send = IDENTITIES[identity](stored)
    warm_up(send)
    assert measure(lambda: REQUESTS[name](send)).steps == [["BatchGetItem"]]


def test_a_warm_get_of_a_larger_body_makes_one_call_to_each_store(stored: Cloud) -> None:
    warm_up(stored.send)
    calls = measure(lambda: REQUESTS["GET inline"](stored.send))
    assert calls.steps == [["BatchGetItem"], ["GetObject"]]


def test_a_counted_key_is_verified_while_the_batch_is_read(stored: Cloud) -> None:
    new = NewKey(user_id=stored.user.id, team_id=stored.team.id, remaining=9)
    send = Sender(create_key(new, now=clock.now())[1])
    warm_up(send)
    both = Barrier(2, timeout=20)

    def meet(**_: object) -> None:
        both.wait()

    with hooked("before-send", meet, aws.dynamodb()):
        assert send("HEAD", "/v8/artifacts/small").status == 200
