"""The capacity that each request takes from each table and index, for `make cost`.

Only AWS's own engine counts capacity as AWS does: ENGINE=dynamodb-local, which `make capacity` sets. A request for a
missing item counts as one read, which that engine does not count in a batch.
"""

import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from threading import Lock
from typing import Any

import pytest

from larder import aws, clock
from larder.api_keys.keys import delete_expired_keys
from larder.artifacts.sweep import SweepReport, sweep
from larder.settings import settings
from tests.catalogue import valid
from tests.conftest import SetOption
from tests.direct_uploads import announce, offer, put_object
from tests.dynamodb_local import engine
from tests.functions.teams.rules import made
from tests.hooks import hooked
from tests.issuer import Issuer, github_claims
from tests.requests import Cloud
from tests.trust.exchanging import exchange
from tests.trust.scene import new_key, protect
from tools.cost.bill import read_book

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not engine.SELECTED, reason="only DynamoDB Local counts capacity")]

Units = dict[tuple[str, str], float]
"""Units of capacity by table or index (`<table>/<index>`) and kind: `reads` or `writes`."""

BUILD = [valid("POST /v8/artifacts/events", hash=f"{number:016x}").json[0] for number in range(50)]


@contextmanager
def measured() -> Iterator[Units]:
    """A context that counts the units of its calls."""
    units: Units = defaultdict(float)
    asked: dict[str, int] = {}
    lock = Lock()

    def ask(params: dict[str, Any], **_: object) -> None:
        params["ReturnConsumedCapacity"] = "INDEXES"
        for table, request in params.get("RequestItems", {}).items():
            if isinstance(request, dict):
                asked[table] = len(request["Keys"])

    def note(parsed: dict[str, Any], model: Any, **_: object) -> None:
        capacity = parsed.get("ConsumedCapacity", [])
        kind = "reads" if model.name in ("GetItem", "BatchGetItem", "Query", "TransactGetItems") else "writes"
        with lock:
            for one in [capacity] if isinstance(capacity, dict) else capacity:
                table = one["TableName"]
                units[table, kind] += one.get("Table", {}).get("CapacityUnits", 0)
                for index, used in one.get("GlobalSecondaryIndexes", {}).items():
                    units[f"{table}/{index}", kind] += used["CapacityUnits"]
            if model.name == "BatchGetItem":
                for table, found in parsed["Responses"].items():
                    units[table, kind] += asked[table] - len(found)

    with (
        hooked("provide-client-params.dynamodb", ask, aws.dynamodb()),
        hooked("after-call.dynamodb", note, aws.dynamodb()),
    ):
        yield units


def taken(act: Callable[[], object]) -> Units:
    with measured() as units:
        act()
    return {key: amount for key, amount in units.items() if amount}


@pytest.fixture
def requests(cloud: Cloud, option: SetOption) -> dict[str, Units]:
    """The units of each kind of request, in an instance that knows the key."""
    send = cloud.send
    send("PUT", "/v8/artifacts/small", body=b"small")
    send("PUT", "/v8/artifacts/large", body=bytes(300_000))
    send("POST", "/v8/artifacts/events", json_body=BUILD)
    found = {
        "small_hit": taken(lambda: send("GET", "/v8/artifacts/small")),
        "redirected_hit": taken(lambda: send("GET", "/v8/artifacts/large")),
        "miss": taken(lambda: send("GET", "/v8/artifacts/absent")),
        "announcement": taken(lambda: send("OPTIONS", "/v8/artifacts/small")),
        "status": taken(lambda: send("GET", "/v8/artifacts/status")),
        "events": taken(lambda: send("POST", "/v8/artifacts/events", json_body=BUILD)),
    }
    found["upload"] = taken(lambda: send("PUT", "/v8/artifacts/put", body=bytes(40_000)))
    kept: list[str] = []
    found["offer"] = taken(lambda: kept.append(offer(send, "direct")))
    put_object(kept[0], b"direct")
    found["commit"] = taken(lambda: announce(kept[0]))
    found["expiry"] = units_of_expiry(cloud)
    return found


def units_of_expiry(cloud: Cloud) -> Units:
    """The units of an artifact's expiry, without what a sweep takes that finds nothing."""
    now = clock.now()
    assert sweep(now=now).totals_checked == 1
    idle = taken(lambda: sweep(now=now))
    cloud.store("expired", now=now - timedelta(days=31))
    with measured() as found:
        assert sweep(now=now) == SweepReport(expired=1)
    return {key: amount - idle.get(key, 0) for key, amount in found.items() if amount != idle.get(key, 0)}


def test_requests_take_the_units_that_the_cost_model_expects(
    requests: dict[str, Units], report_lines: list[str]
) -> None:
    options = settings()
    takes = tomllib.loads(Path(__file__).with_name("capacity.toml").read_text())
    places = {
        ("keys", options.api_keys_table),
        ("identity", options.identity_table),
        ("teams", options.teams_table),
        ("artifacts", options.artifacts_table),
        ("by_sweep", f"{options.artifacts_table}/by_sweep"),
        ("by_last_use", f"{options.artifacts_table}/by_last_use"),
        ("by_upload", f"{options.artifacts_table}/by_upload"),
        ("usage", options.usage_table),
    }
    differing = []
    for kind, units in requests.items():
        report_lines.append(f"{kind:16} " + " ".join(f"{k[0]}:{k[1]}={v:g}" for k, v in sorted(units.items())))
        for name, place in sorted(places):
            for what in ("reads", "writes"):
                expected = takes.get(f"{name}_{what}", {}).get(kind, 0)
                if units.get((place, what), 0) != expected:
                    differing.append((kind, name, what, units.get((place, what), 0), expected))
        uses = read_book().uses["requests"][kind]
        for what in ("reads", "writes"):
            found, expected = _whole(units, what), uses.get(what, 0)
            if found != expected:
                differing.append((kind, "all", what, found, expected))
    assert not differing


def _whole(units: Units, what: str) -> float:
    return sum(amount for (_, of), amount in units.items() if of == what)


def test_own_scopes_and_tokens_of_ci_take_the_units_that_the_cost_model_expects(
    cloud: Cloud, report_lines: list[str], option: SetOption
) -> None:
    """A read with a credential that is not trusted also reads its own scope."""
    key = new_key(cloud)
    cloud.store("shared", now=clock.now())

    def read() -> list[float]:
        """The reads of a hit and of a miss."""
        key("GET", "/v8/artifacts/shared")
        hit = taken(lambda: key("GET", "/v8/artifacts/shared"))
        miss = taken(lambda: key("GET", "/v8/artifacts/absent"))
        return [_whole(hit, "reads"), _whole(miss, "reads")]

    plain = read()
    protect(cloud, keep_stored=True)
    more = [after - before for after, before in zip(read(), plain, strict=True)]
    made(cloud)
    github = Issuer()
    github.publish()
    option("http_rate_limit_enabled", "true")
    # The first token of a rule fixes the ids of its repository.
    assert exchange(github.mint(github_claims())).status == 200
    given = taken(lambda: exchange(github.mint(github_claims())))
    now = clock.now() + timedelta(days=2)
    idle = taken(lambda: delete_expired_keys(now=now))
    report_lines.append(f"own scope {more}, exchange {dict(given)}, sweep {dict(idle)}")
    book = read_book()
    # A miss also reads the upload that is offered there.
    assert more == [book.uses["own_scopes"]["reads"], book.uses["own_scopes"]["reads"] + 2]
    exchanged = book.uses["each_ci_token"]
    for what in ("reads", "writes"):
        assert _whole(given, what) + _whole(idle, what) / 2 == exchanged[what]


def test_the_first_hit_of_an_artifact_in_a_day_writes_three_units(cloud: Cloud) -> None:
    table = settings().artifacts_table
    cloud.store("abc", now=clock.now() - timedelta(days=2))
    cloud.send("GET", "/v8/artifacts/status")  # notes the use of the key
    first, second = (taken(lambda: cloud.send("GET", "/v8/artifacts/abc")) for _ in range(2))
    writes = {place: units for (place, kind), units in first.items() if kind == "writes"}
    assert writes == {table: 1, f"{table}/by_last_use": 2}
    assert not [kind for _, kind in second if kind == "writes"]
