"""A team's artifacts against a model: any requests in any order, two at once, and processes that end at any call."""

import os
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, partial
from typing import Any

import boto3
import pytest
import time_machine
from hypothesis import settings as machine_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from larder import clock
from larder.artifacts.repository.totals import read_totals
from larder.instance import restart
from larder.settings import region, settings
from larder.teams.state import change_state
from tests.conftest import SetOption
from tests.direct_uploads import announce, object_keys, offer
from tests.machines.artifact_model import SHARED, Model, Reply
from tests.machines.interleaving import crashing, interrupted
from tests.moto_stores import Stores
from tests.requests import Cloud, invoke
from tests.trust.scene import Scene, make_scene, restored, session

EXAMPLES = 8 * int(os.environ.get("MACHINE_ROUNDS") or 1)

SECOND = timedelta(seconds=1)
STEP = timedelta(seconds=5)
"""Between two requests. A team's protection counts from two seconds later."""

PLENTY = 10**9
"""A quota that nothing reaches. With a small one the team is never protected, because own scopes have a share of it."""

WRITERS = ("main", "pr", "laptop")
"""A trusted key, another key and a member with a session."""

writers = st.sampled_from(WRITERS)
hashes = st.sampled_from(("a1", "b2"))
sizes = st.sampled_from((0, 5_000, 50_000))
"""Where the body is: in the index, next to it, or in the bucket only."""
calls = st.integers(1, 12)

requests = st.one_of(
    st.tuples(st.just("put"), writers, hashes, sizes),
    st.tuples(st.just("read"), writers, hashes, st.sampled_from(("GET", "HEAD", "query"))),
    st.tuples(st.just("offer"), writers, hashes),
    st.tuples(st.just("delete"), st.sampled_from((SHARED, "pr", "laptop")), hashes),
    st.tuples(st.just("arrive"), st.integers(0, 3), sizes),
    st.tuples(st.just("event"), st.integers(0, 3)),
    st.tuples(st.just("protect"), st.booleans(), st.booleans()),
)


@dataclass(frozen=True, eq=False)
class Request:
    """A request to the real service, and the same to the model. Both return what the client gets."""

    name: str
    at: datetime
    real: Callable[[], Reply]
    model: Callable[[Model], Reply]


@cache
def _client() -> Any:
    """S3 for the client of a direct upload, whose calls are no function's."""
    return boto3.Session(region_name=region()).client("s3")


class Artifacts(RuleBasedStateMachine):
    def __init__(self, scene: Scene, stores: Stores, quota: int) -> None:
        super().__init__()
        stores.put_back()
        self.cloud, self.senders = scene.cloud, {"main": scene.main, "pr": scene.pr}
        self.travel = time_machine.travel(clock.now().replace(microsecond=0) + STEP, tick=False)
        self.clock = self.travel.start()
        restart()
        change_state(self.cloud.team.id, quota_bytes=quota)
        self.sign_in()
        self.scopes = {"laptop": f"u{self.cloud.user.id}", "pr": f"k{self.cloud.key.id}"}
        self.model = Model(quota=quota, now=clock.now())
        self.keys: dict[int, str] = {}
        """The object of each offer."""
        self.versions: dict[int, str] = {}
        self.number = 0
        self.is_exact = True
        """Whether nothing that a crash left is still to be swept."""

    def teardown(self) -> None:
        self.travel.stop()

    def sign_in(self) -> None:
        self.owner = self.senders["laptop"] = session(self.cloud)

    # Requests.

    def request(self, kind: str, *drawn: Any, at: datetime) -> Request | None:
        """None if there is nothing for it, such as an open offer."""
        self.number += 1
        number, size = self.number, 100 + self.number
        known = self.model.offers.items()
        calls: tuple[Callable[..., Reply], Callable[..., Reply], tuple[Any, ...]]
        match kind, drawn:
            case "put", (writer, hash, more):
                calls = self.put, Model.put, (writer, hash, size + more)
            case "read", (writer, hash, how):
                calls = self.read, Model.read, (writer, hash, how)
            case "offer", (writer, hash):
                calls = self.offer, Model.offer, (writer, hash, number)
            case "delete", (scope, hash):
                calls = self.delete, Model.delete, (scope, hash)
            case "arrive", (index, more) if open_ := [one for one, offer in known if not offer.size]:
                calls = self.arrive, Model.arrive, (open_[index % len(open_)], size + more)
            case "event", (index,) if arrived := [one for one, offer in known if offer.size]:
                calls = self.event, Model.publish, (arrived[index % len(arrived)],)
            case "protect", (on, keep) if self.model.quota == PLENTY:
                calls = self.protect, Model.protect, (on, on and keep)
            case _:
                return None
        real, model, arguments = calls
        return Request(f"{kind} {arguments}", at, lambda: real(*arguments), lambda m: model(m, *arguments))

    def put(self, writer: str, hash: str, size: int) -> Reply:
        return self.senders[writer]("PUT", f"/v8/artifacts/{hash}", body=b"x" * size).status, 0

    def read(self, writer: str, hash: str, how: str) -> Reply:
        send = self.senders[writer]
        if how == "query":
            (found,) = send("POST", "/v8/artifacts", json_body={"hashes": [hash]}).json.values()
            return (404, 0) if found is None else (200, found["size"])
        reply = send(how, f"/v8/artifacts/{hash}")
        if reply.status == 404:
            return 404, 0
        body = restored(reply) if how == "GET" else b""
        return 200, len(body) if how == "GET" else int(reply.headers["content-length"])

    def offer(self, writer: str, hash: str, number: int) -> Reply:
        self.keys[number] = offer(self.senders[writer], hash)
        return 204, 0

    def arrive(self, number: int, size: int) -> Reply:
        bucket = settings().artifacts_bucket
        reply = _client().put_object(Bucket=bucket, Key=self.keys[number], Body=b"x" * size)
        self.versions.setdefault(number, reply["VersionId"])
        return 0, 0

    def event(self, number: int) -> Reply:
        announce(self.keys[number], version=self.versions[number])
        return 0, 0

    def delete(self, scope: str, hash: str) -> Reply:
        reply = self.owner("DELETE", f"/v1/artifacts/{hash}?scope={self.scopes.get(scope, scope)}")
        return reply.status, int(reply.json["deleted"])

    def protect(self, on: bool, keep: bool) -> Reply:
        body = {"protected": on, **({"keepStored": True} if keep else {})}
        return self.owner("PUT", f"/v1/teams/{self.cloud.team.slug}/protection", json_body=body).status, 0

    # Steps.

    def pass_(self, time: timedelta) -> None:
        self.clock.shift(time)
        self.model.now = clock.now()

    @rule(drawn=requests)
    def one_request(self, drawn: tuple[Any, ...]) -> None:
        self.pass_(STEP)
        request = self.request(*drawn, at=clock.now())
        if request is not None:
            assert request.real() == request.model(self.model), request.name

    @rule(first=requests, second=requests, at=calls)
    def two_requests_at_once(self, first: tuple[Any, ...], second: tuple[Any, ...], at: int) -> None:
        """The second one runs whole right before a call of the first. It is as if they came one after the other."""
        self.pass_(STEP)
        now = clock.now()
        one, other = self.request(*first, at=now), self.request(*second, at=now + SECOND)
        if one is None or other is None:
            return
        replies: list[Any] = []

        def interrupt() -> None:
            self.clock.shift(SECOND)
            replies.append(other.real())

        with interrupted(at, interrupt):
            reply = one.real()
        if not replies:
            interrupt()
        found = reply, replies[0], self.listed()
        possible = [self.in_order(one, other), self.in_order(other, one)]
        outcomes = [(replies[one], replies[other], self.expected(model)) for replies, model in possible]
        assert found in outcomes, (one.name, other.name, found, outcomes)
        self.model = possible[outcomes.index(found)][1]

    def in_order(self, *requests: Request) -> tuple[dict[Request, Reply], Model]:
        """The replies and the model after these requests, each at its own time."""
        model = deepcopy(self.model)
        replies = {}
        for request in requests:
            model.now = request.at
            replies[request] = request.model(model)
        model.now = clock.now()
        return replies, model

    @rule(drawn=requests.filter(lambda one: one[0] in {"put", "read", "delete", "event"}), at=calls, done=st.booleans())
    def a_process_that_ends(self, drawn: tuple[Any, ...], at: int, done: bool) -> None:
        """The request was not made, or it was. S3's event of what it stored arrives later."""
        self.pass_(STEP)
        request = self.request(*drawn, at=clock.now())
        if request is None:
            return
        before, model = set(object_keys()), deepcopy(self.model)
        with crashing(at, carried_out=done):
            request.real()
        for key in set(object_keys()) - before:
            announce(key)
        request.model(model)
        self.is_exact = False
        matching = [one for one in (self.model, model) if self.expected(one) == self.listed()]
        assert matching, (request.name, self.listed(), self.expected(self.model), self.expected(model))
        self.model = matching[-1]

    @rule(days=st.sampled_from((1, 5, 8, 21)))
    def days_pass(self, days: int) -> None:
        self.sweep()
        self.pass_(timedelta(days=days))
        self.sign_in()

    @rule()
    def sweep(self) -> None:
        """Every event has come, and the sweep has run for two days."""
        for number, offered in list(self.model.offers.items()):
            if offered.size:
                self.event(number)
                self.model.publish(number)
        self.model.offers.clear()
        self.model.newest.clear()
        for hours in (25, 26):
            self.pass_(timedelta(hours=hours))
            invoke("artifacts.sweep_artifacts.handler", {})
        self.sign_in()
        self.model.sweep()
        self.is_exact = True
        assert len(object_keys()) == len(self.model.stored)

    # What holds after every step.

    def listed(self) -> set[tuple[str, str, int]]:
        """The scope, hash and size of each artifact, also of hidden ones."""
        reply = self.owner("GET", "/v1/artifacts?scope=all&hidden=true&limit=100")
        assert reply.status == 200, reply
        names = {scope: name for name, scope in self.scopes.items()}
        return {
            (names.get(one.get("scope", SHARED), one.get("scope", SHARED)), one["hash"], one["size"])
            for one in reply.json["artifacts"]
        }

    def expected(self, model: Model) -> set[tuple[str, str, int]]:
        return {(*place, one.size) for place, one in model.stored.items() if not model.has_expired(place)}

    @invariant()
    def the_list_has_what_is_stored(self) -> None:
        assert self.listed() == self.expected(self.model)

    @invariant()
    @precondition(lambda self: self.is_exact)
    def the_totals_count_what_is_stored(self) -> None:
        totals = read_totals(self.cloud.team.id)
        assert (totals.size_bytes, totals.artifacts) == (self.model.total, len(self.model.stored))


@pytest.mark.parametrize("quota", [PLENTY, 120_000], ids=["with space", "near the quota"])
def test_any_requests_have_the_outcome_of_the_model(cloud: Cloud, option: SetOption, quota: int) -> None:
    option("over_quota", "refuse")
    scene = make_scene(cloud)
    stores = Stores(region())
    machine: Any = partial(Artifacts, scene, stores, quota)
    run_state_machine_as_test(
        machine,
        settings=machine_settings(max_examples=EXAMPLES, stateful_step_count=30, deadline=None, derandomize=True),
    )
