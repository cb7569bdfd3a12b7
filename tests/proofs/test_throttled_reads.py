"""DynamoDB refuses some items of a BatchGetItem: readers of one team lose nothing, and a revoked key works five seconds
longer at most.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from types import SimpleNamespace
from typing import Any

import pytest

from larder import aws, tables
from larder.api_keys.keys import revoke_key
from larder.api_keys.repository import reading
from larder.artifacts.models import ArtifactHash, Wanted
from larder.artifacts.repository.index import read_with_credential
from larder.aws import Throttled
from larder.errors import TryAgain
from larder.settings import settings
from larder.tables import TEAMS
from larder.teams.repository import read_membership
from tests.requests import Cloud

READERS = 64
KEY, USER, TEAM = "api_keys_table", "identity_table", "teams_table"


@dataclass
class Throttle:
    """A token bucket for each item, or none for the items of these tables, in front of BatchGetItem.

    `whole` refuses a request of which DynamoDB could carry out nothing as DynamoDB does: with an error.
    """

    rate: float = float("inf")
    burst: float = 1.0
    shut: set[str] = field(default_factory=set)
    refused: int = 0
    calls: int = 0
    _left: dict[str, tuple[float, float]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def _takes(self, table: str, key: Any) -> bool:
        if table in {getattr(settings(), name) for name in self.shut}:
            return False
        with self._lock:
            now = time.perf_counter()
            left, since = self._left.get(f"{table} {key}", (self.burst, now))
            left = min(self.burst, left + (now - since) * self.rate)
            self._left[f"{table} {key}"] = (left - (left >= 1), now)
            return left >= 1

    def batch_get_item(self, *, RequestItems: dict[str, Any]) -> dict[str, Any]:  # noqa: N803 - boto3's
        self.calls += 1
        asked: dict[str, Any] = {}
        refused: dict[str, Any] = {}
        for table, of in RequestItems.items():
            taken = [key for key in of["Keys"] if self._takes(table, key)]
            rest = [key for key in of["Keys"] if key not in taken]
            asked |= {table: {**of, "Keys": taken}} if taken else {}
            refused |= {table: {**of, "Keys": rest}} if rest else {}
        self.refused += bool(refused)
        if not asked:
            raise Throttled
        return {**aws.dynamodb().batch_get_item(RequestItems=asked), "UnprocessedKeys": refused}

    def __getattr__(self, name: str) -> Any:
        return getattr(aws.dynamodb(), name)


@pytest.fixture
def throttled(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Throttle]:
    """Call it with the fields of a Throttle to put it in front of DynamoDB."""
    cloud.send("PUT", "/v8/artifacts/abc", body=b"body")

    def begin(**fields: Any) -> Throttle:
        throttle = Throttle(**fields)
        monkeypatch.setattr(tables, "dynamodb", lambda: throttle)
        return throttle

    return begin


def test_readers_of_one_team_lose_nothing(cloud: Cloud, throttled: Callable[..., Throttle], capfd: Any) -> None:
    for number in range(READERS):
        cloud.send("PUT", f"/v8/artifacts/of{number}", body=b"%d" % number)
    # A sixth of what the readers ask for.
    throttle = throttled(rate=READERS / 2, burst=READERS / 4)

    key_hash = cloud.key.key_hash

    def read(number: int) -> list[tuple[bool, bool, bytes | None]]:
        wanted = Wanted(hash=ArtifactHash(f"of{number}"), body=True)
        found = []
        for _ in range(3):
            key, items = read_with_credential(reading(key_hash), cloud.team.id, cloud.user.id, wanted)
            artifact = items.entry.artifact
            has_role = items.membership.role is not None
            found.append((key is not None, has_role, artifact.body if artifact else None))
        return found

    with ThreadPoolExecutor(READERS) as pool:
        replies = [*pool.map(read, range(READERS))]
    assert replies == [[(True, True, b"%d" % number)] * 3 for number in range(READERS)]
    assert throttle.refused
    assert capfd.readouterr().out.count('"CopiesUsed": 1') > READERS


@pytest.mark.usefixtures("no_pauses")
class TestOneInstance:
    @pytest.mark.parametrize(
        "shut", [{KEY}, {USER}, {TEAM}, {KEY, USER, TEAM}], ids=lambda shut: "-".join(sorted(shut))
    )
    def test_shared_items_that_were_just_read_may_be_copies(
        self, cloud: Cloud, throttled: Callable[..., Throttle], shut: set[str], capfd: Any
    ) -> None:
        assert cloud.send("GET", "/v8/artifacts/abc").status == 200
        throttle = throttled(shut=shut)
        assert cloud.send("GET", "/v8/artifacts/abc").body == b"body"
        assert cloud.send("GET", "/v8/artifacts/none").status == 404
        # A miss also reads the upload that is offered for the hash.
        assert (throttle.calls, capfd.readouterr().out.count('"CopiesUsed": 1')) == (3, 2)
        # A new instance has no copies.
        tables._copies.clear()
        assert (cloud.send("GET", "/v8/artifacts/abc").status, throttle.calls) == (503, 8)

    def test_an_artifact_is_never_a_copy(self, cloud: Cloud, throttled: Callable[..., Throttle]) -> None:
        assert cloud.send("GET", "/v8/artifacts/abc").status == 200
        for shut in ({"artifacts_table"}, {"artifacts_table", KEY, USER, TEAM}):
            throttle = throttled(shut=shut)
            reply = cloud.send("GET", "/v8/artifacts/abc")
            assert (reply.status, throttle.calls) == (503, 5)

    @pytest.mark.parametrize("shut", [set(), {KEY}])
    def test_a_revoked_key_is_refused_when_dynamodb_answers(
        self, cloud: Cloud, throttled: Callable[..., Throttle], shut: set[str]
    ) -> None:
        assert cloud.send("GET", "/v8/artifacts/abc").status == 200
        throttle = throttled(shut=shut)
        revoke_key(cloud.key)
        if shut:
            assert cloud.send("GET", "/v8/artifacts/abc").status == 200
            throttle.shut = set()
        assert cloud.send("GET", "/v8/artifacts/abc").status == 401
        # The copy from before is forgotten.
        throttle.shut = {KEY}
        assert cloud.send("GET", "/v8/artifacts/abc").status == 503

    @pytest.mark.parametrize(
        ("monotonic", "wall", "lasts"),
        [(4.9, 4.9, True), (5.1, 5.1, False), (5.1, 0, False), (0, 5.1, False), (1, -1, False)],
    )
    def test_copies_last_five_seconds_by_both_clocks(
        self,
        cloud: Cloud,
        throttled: Callable[..., Throttle],
        monkeypatch: pytest.MonkeyPatch,
        monotonic: float,
        wall: float,
        lasts: bool,
    ) -> None:
        now = {"monotonic": 100.0, "wall": 1000.0}
        clocks = {"monotonic": lambda: now["monotonic"], "time": lambda: now["wall"], "sleep": lambda _: None}
        monkeypatch.setattr(tables, "time", SimpleNamespace(**clocks))
        assert cloud.send("GET", "/v8/artifacts/abc").status == 200
        throttled(shut={KEY, USER, TEAM})
        # Using a copy does not make it last longer.
        assert cloud.send("GET", "/v8/artifacts/abc").status == 200
        now |= {"monotonic": 100.0 + monotonic, "wall": 1000.0 + wall}
        assert cloud.send("GET", "/v8/artifacts/abc").status == (200 if lasts else 503)

    def test_reads_of_management_are_never_copies(self, cloud: Cloud, throttled: Callable[..., Throttle]) -> None:
        assert cloud.send("GET", "/v8/artifacts/abc").status == 200
        throttled(shut={TEAM})
        for read in (read_membership, lambda team_id, _: TEAMS.get_many([(team_id, "team")])):
            with pytest.raises(TryAgain):
                read(cloud.team.id, cloud.user.id)


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("larder.tables.time.sleep", lambda _: None)
