"""A team's artifacts against a model: any requests in any order, two at once, and processes that end at any call."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from datetime import datetime, timedelta
from functools import cache, partial
from typing import Any

import boto3
import pytest
import time_machine
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from larder import clock
from larder.artifacts.models import ArtifactHash, parse_object_key
from larder.artifacts.repository.index import read_entry
from larder.artifacts.repository.totals import read_totals
from larder.artifacts.storage import delete_version
from larder.errors import TryAgain
from larder.instance import restart
from larder.settings import region, settings
from larder.teams.state import change_state
from tests.conftest import SetOption
from tests.direct_uploads import announce, object_keys, offer, versions_of
from tests.machines.artifact_model import SHARED, Model, Reply
from tests.machines.interleaving import crashing, overlapping
from tests.machines.orders import BUSY, Outcome, Request, either_order, quiet_settings
from tests.moto_stores import Stores
from tests.requests import Cloud, invoke
from tests.trust.scene import Scene, make_scene, restored, session

SECOND = timedelta(seconds=1)
STEP = timedelta(seconds=5)
"""Between two requests. A team's protection counts from two seconds later."""

PLENTY = 10**9
"""A quota that nothing reaches. With a small one the team is never protected, because own scopes have a share of it."""

WRITERS = ("main", "pr", "laptop")
"""A trusted key, another key and a member with a session."""

writers = st.sampled_from(WRITERS)
hashes = st.integers(0, 11)
"""Each machine has as many hashes as divide this."""
sizes = st.sampled_from((0, 5_000, 50_000))
"""Where the body is: in the index, next to it, or in the bucket only."""
calls = st.integers(1, 12)

puts = st.tuples(st.just("put"), hashes, writers, sizes)
reads = st.tuples(st.just("read"), hashes, writers, st.sampled_from(("GET", "HEAD", "query")))
offers = st.tuples(st.just("offer"), hashes, writers)
deletions = st.tuples(st.just("delete"), hashes, st.sampled_from((SHARED, "pr", "laptop")))
arrivals = st.tuples(st.just("arrive"), st.integers(0, 3), sizes)
events = st.tuples(st.just("event"), st.integers(0, 3))
protections = st.tuples(st.just("protect"), st.booleans(), st.booleans())

changes = st.one_of(puts, puts, events, deletions)
requests = st.one_of(puts, puts, reads, offers, arrivals, events, deletions, protections)


@cache
def _client() -> Any:
    """S3 for the client of a direct upload, whose calls are no function's."""
    return boto3.Session(region_name=region()).client("s3")


class Artifacts(RuleBasedStateMachine):
    def __init__(self, scene: Scene, stores: Stores, jobs: list[Any], quota: int, hashes: int, evicts: bool) -> None:
        super().__init__()
        stores.put_back()
        self.cloud, self.senders = scene.cloud, {"main": scene.main, "pr": scene.pr}
        self.travel = time_machine.travel(clock.now().replace(microsecond=0) + STEP, tick=False)
        self.clock = self.travel.start()
        restart()
        change_state(self.cloud.team.id, quota_bytes=quota)
        self.sign_in()
        self.scopes = {"laptop": f"u{self.cloud.user.id}", "pr": f"k{self.cloud.key.id}"}
        self.model = Model(quota, evicts, clock.now())
        self.jobs, self.hashes = jobs, hashes
        self.jobs.clear()
        self.keys: dict[int, str] = {}
        """The object of each offer."""
        self.versions: dict[int, str] = {}
        self.number = 0
        self.is_exact = True
        """Whether nothing that a crash left is still to be swept."""

    def teardown(self) -> None:
        try:
            self.sweep()
        finally:
            self.travel.stop()

    def sign_in(self) -> None:
        self.owner = self.senders["laptop"] = session(self.cloud)

    # Requests.

    def request(self, kind: str, *drawn: Any, at: datetime) -> Request | None:
        """None if there is nothing for it, such as an open offer."""
        self.number += 1
        number, size = self.number, 100 + self.number
        hash, known = f"a{drawn[0] % self.hashes}", self.model.offers.items()
        calls: tuple[Callable[..., Outcome], Callable[..., Reply], tuple[Any, ...]]
        match kind, drawn:
            case "put", (_, writer, more):
                calls = self.put, Model.put, (writer, hash, size + more)
            case "read", (_, reader, how):
                calls = self.read, Model.read, (reader, hash, how)
            case "offer", (_, writer):
                calls = self.offer, Model.offer, (writer, hash, number)
            case "delete", (_, scope):
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

        def apply(changed: Model) -> Reply:
            changed.now = at
            return model(changed, *arguments)

        return Request(kind, {"of": arguments}, lambda: real(*arguments), apply)

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

    def event(self, number: int) -> Outcome:
        try:
            announce(self.keys[number], version=self.versions[number])
        except TryAgain:
            # Lambda runs the function again later, as the rule `event` does.
            return BUSY
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
            assert request.send() == request.apply(self.model), request
            assert self.agrees(self.model), request

    @rule(first=requests, second=requests, at=calls)
    def two_requests_at_once(self, first: tuple[Any, ...], second: tuple[Any, ...], at: int) -> None:
        self.at_once(first, second, at)

    @rule(first=changes, second=changes, at=st.integers(2, 8))
    def two_changes_of_one_hash_at_once(self, first: tuple[Any, ...], second: tuple[Any, ...], at: int) -> None:
        self.at_once(first, (second[0], first[1], *second[2:]), at)

    def at_once(self, first: tuple[Any, ...], second: tuple[Any, ...], at: int) -> None:
        """The second one runs whole right before a call of the first. It is as if they came one after the other."""
        self.pass_(STEP)
        now = clock.now()
        one, other = self.request(*first, at=now), self.request(*second, at=now + SECOND)
        if one is None or other is None:
            return

        def interrupt() -> Outcome:
            self.clock.shift(SECOND)
            return other.send()

        replies = overlapping(at, one.send, interrupt)
        possible = list(either_order(self.model, (one, other), replies, starts=Model.while_uploading))
        for model in possible:
            model.now, model.counts_replaced = clock.now(), False
        agreeing = [model for model in possible if self.agrees(model)]
        assert agreeing, (one, other, replies, self.listed(), possible)
        self.model = agreeing[0]

    @rule(drawn=changes, at=calls, done=st.booleans())
    def a_process_that_ends(self, drawn: tuple[Any, ...], at: int, done: bool) -> None:
        """The request was not made, or it was. S3's event of a direct upload arrives later."""
        self.pass_(STEP)
        request = self.request(*drawn, at=clock.now())
        if request is None:
            return
        before, model = set(object_keys()), deepcopy(self.model)
        with crashing(at, carried_out=done):
            request.send()
        for key in set(object_keys()) - before:
            upload = parse_object_key(key)
            assert upload is not None
            if upload.writer is not None:
                announce(key)
                continue
            published = read_entry(upload.owner, upload.hash, upload.scope).artifact
            if published is None or published.upload.id != upload.id:
                # Nothing refers to it, so the lifecycle of the bucket deletes it.
                for version in versions_of(key):
                    delete_version(upload, version.id)
        request.apply(model)
        agreeing = [one for one in (model, self.model, *self.halfway(request)) if self.agrees(one)]
        assert agreeing, (request, self.listed(), self.expected(self.model), self.expected(model))
        self.model = agreeing[0]
        self.is_exact = False
        if self.model.quota != PLENTY:
            # Until then, what the crash left counts.
            self.sweep()

    def halfway(self, request: Request) -> Iterator[Model]:
        """A deletion that ends early may have refused what was offered."""
        if request.name == "delete":
            model = deepcopy(self.model)
            for _ in model.deletion(request.given["of"]):
                yield deepcopy(model)

    @rule(hours=st.sampled_from((0, 24, 5 * 24, 8 * 24, 21 * 24)), at=st.integers(1, 60), done=st.booleans())
    def time_passes(self, hours: int, at: int, done: bool) -> None:
        """Every job runs, and every event comes. One of the sweeps ends at a call; later ones complete its work."""
        while self.jobs:
            invoke("artifacts.remove_artifacts.handler", self.jobs.pop())
        assert self.agrees(self.model)
        self.receive()
        self.pass_(timedelta(hours=25))
        with crashing(at, carried_out=done):
            invoke("artifacts.sweep_artifacts.handler", {})
        self.sweep()
        self.pass_(timedelta(hours=hours))
        self.sign_in()

    def sweep(self) -> None:
        """Every event has come, and the sweep has run for two days, and after the last download."""
        self.receive()
        for hours in (25, 26, 2):
            self.pass_(timedelta(hours=hours))
            invoke("artifacts.sweep_artifacts.handler", {})
        self.sign_in()
        self.model.sweep()
        self.is_exact = True
        assert self.agrees(self.model)
        assert len(object_keys()) == len(self.model.stored) + self.renewals()

    def renewals(self) -> int:
        """The artifacts whose objects the last sweep has copied, so that they last. The next one deletes the former
        versions.
        """
        owner, model = self.cloud.team.id, self.model
        entries = [read_entry(owner, ArtifactHash(hash), self.scopes.get(scope)) for scope, hash in model.stored]
        return sum(entry.artifact is not None and entry.artifact.former_version is not None for entry in entries)

    def receive(self) -> None:
        """Every event comes. What has not arrived by now is never sent."""
        for number, offered in list(self.model.offers.items()):
            if offered.size:
                self.event(number)
                self.model.publish(number)
        self.model.offers.clear()
        self.model.newest.clear()
        self.model.marked.clear()

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

    def agrees(self, model: Model) -> bool:
        """Whether the model has what is stored, after the evictions that it allows."""
        listed, expected = self.listed(), self.expected(model)
        evicted = {(scope, hash) for scope, hash, _ in expected - listed}
        if not listed <= expected or (evicted and not model.evict(evicted)):
            return False
        if {place for place in model.newest if self.is_marked(*place)} != model.marked:
            return False
        if not self.jobs:
            model.most = model.total
        return True

    def is_marked(self, scope: str, hash: str) -> bool:
        artifact = read_entry(self.cloud.team.id, ArtifactHash(hash), self.scopes.get(scope)).artifact
        return artifact is not None and artifact.offered is not None

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


@pytest.mark.parametrize(
    ("quota", "over_quota", "hashes", "partitions", "examples"),
    [
        pytest.param(PLENTY, "refuse", 2, 8, 6, id="with space", marks=pytest.mark.slow),
        pytest.param(PLENTY, "refuse", 2, 1, 6, id="in one partition", marks=pytest.mark.slow),
        pytest.param(120_000, "refuse", 3, 1, 6, id="at the quota", marks=pytest.mark.slow),
        pytest.param(120_000, "evict", 6, 8, 2, id="evicting"),
    ],
    indirect=["partitions"],
)
@pytest.mark.usefixtures("partitions")
def test_any_requests_have_the_outcome_of_the_model(
    cloud: Cloud, option: SetOption, removal_jobs: list[Any], quota: int, over_quota: str, hashes: int, examples: int
) -> None:
    option("over_quota", over_quota)
    scene, stores = make_scene(cloud), Stores(region())
    machine: Any = partial(Artifacts, scene, stores, removal_jobs, quota, hashes, over_quota == "evict")
    run_state_machine_as_test(machine, settings=quiet_settings(examples=examples, steps=30))
