"""`larder edge`: its keys, its store, and what needs no edge. tests/e2e/test_edge_command.py runs it on one."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
import time_machine

from larder import aws, clock
from larder.artifacts.repository.index import read_entry
from larder.settings import edge_key_file
from larder.signing import read_edge_key
from larder_cli.edge import probes
from larder_cli.edge.probes import PROBES, Probing
from larder_cli.edge.store import CloudFrontStore, FileStore
from larder_cli.edge.switch import FUNCTIONS_CACHE_IT_FOR, UNUSED_KEYS_LIVE, Switch
from larder_cli.outcomes import Failed, NotTried
from tests.conftest import SetOption
from tests.edge.requests import EdgeRequests
from tests.requests import Cloud

from .conftest import OUTPUTS, PARAMETERS, Larder, change_cloud_json
from .fake_aws import FakeAws

ADDRESS_LIVES = timedelta(seconds=600)


def unused_url() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def deployed(data_folder: Path) -> Path:
    """The folder of an edge that does not answer."""
    folder = data_folder / "edge"
    folder.mkdir()
    change_cloud_json(data_folder, LARDER_EDGE_URL=unused_url(), LARDER_EDGE_KEY=str(folder / "switch.json"))
    return folder


# ------------------------------------------------------------------------------------ the commands


@pytest.mark.parametrize("command", ["enable", "rotate", "disable"])
def test_a_deployment_without_an_edge_is_told_how_to_get_one(larder: Larder, command: str) -> None:
    assert "deploy it with Edge=true" in larder.refusal("edge", command)


def test_the_status_without_an_edge(larder: Larder) -> None:
    assert larder.json("edge", "status") == {"state": "not deployed", "url": None, "keys": []}
    assert "Edge=true" in larder("edge", "status").stdout


def test_the_status_shows_keys_and_lifetimes(larder: Larder, deployed: Path) -> None:
    (deployed / "keys.json").write_text(
        json.dumps({"key-ab": f"{'0' * 64} once", "key-cd": "1" * 64, "old-cd": "1900000000"})
    )
    (deployed / "switch.json").write_text(json.dumps({"id": "ab", "key": "0" * 64}))
    status = larder.json("edge", "status")
    assert (status["state"], status["key"]) == ("on", "ab")
    assert (status["upload_address_s"], status["download_address_s"]) == (600, 600)
    assert status["keys"] == [
        {"id": "ab", "flags": ["once"], "in_use": True, "until": None},
        {"id": "cd", "flags": [], "in_use": False, "until": "2030-03-17T17:46:40.000Z"},
    ]
    shown = larder("edge", "status").stdout
    assert "2030-03-17 17:46:40 UTC" in shown
    assert "0" * 64 not in shown + json.dumps(status)


def test_a_key_that_the_edge_does_not_know_is_an_error(larder: Larder, deployed: Path) -> None:
    (deployed / "switch.json").write_text(json.dumps({"id": "ab", "key": "0" * 64}))
    result = larder("edge", "status", status=1)
    assert "the key ab, which the edge does not know" in result.stderr


def test_an_edge_that_does_not_answer_stays_off(larder: Larder, deployed: Path) -> None:
    report = json.loads(larder("edge", "enable", "--json", status=1).stdout)
    (failed,) = report["probes"]
    assert failed["found"].startswith("no response")
    assert not (deployed / "switch.json").exists()
    assert json.loads((deployed / "keys.json").read_text()) == {}
    shown = larder("edge", "enable", status=1).stdout
    assert "then: the edge stays off" in shown
    assert "Clients use presigned URLs of S3, as before." in shown


@pytest.mark.skipif(find_spec("awscrt") is not None, reason="`make edge-tools` has installed it")
def test_without_awscrt_the_error_names_it(stack: FakeAws) -> None:
    arn = "arn:aws:cloudfront::123456789012:key-value-store/abc"
    stack.holds_stack({**OUTPUTS, "EdgeKeys": arn}, PARAMETERS)
    larder = Larder(("--stack", "larder", "--region", "eu-central-1"))
    assert "make edge-tools" in larder.refusal("edge", "status")


# ---------------------------------------------------------------------------------------- the keys


@pytest.fixture
def switch(cloud: Cloud, tmp_path: Path, own_environment: pytest.MonkeyPatch) -> Iterator[Switch]:
    own_environment.setenv("LARDER_EDGE_KEY", str(tmp_path / "switch.json"))
    edge_key_file.cache_clear()
    yield Switch(FileStore(tmp_path / "keys.json"))
    edge_key_file.cache_clear()


def test_an_old_key_stays_until_its_addresses_have_expired(switch: Switch) -> None:
    with time_machine.travel(clock.now(), tick=False) as now:
        first, second = switch.add(("once",)), switch.add(("once", "unsigned"))
        switch.use(first)
        old = switch.use(second)
        assert old is not None
        assert (old.id, old.in_use) == (first.id, False)
        assert switch.delete_expired() == []
        now.shift(FUNCTIONS_CACHE_IT_FOR + ADDRESS_LIVES)
        assert switch.delete_expired() == []
        now.shift(2)
        assert switch.delete_expired() == [first.id]
    (left,) = switch.stored_keys()
    assert (left.id, left.flags, left.in_use, left.until) == (second.id, ("once", "unsigned"), True, None)
    assert read_edge_key() == second


def test_a_key_in_use_is_never_deleted_as_old(switch: Switch) -> None:
    """A command that stops between marking the key and replacing it."""
    key = switch.add(("once",))
    switch.use(key)
    switch.store.put(f"old-{key.id}", "1000")
    assert switch.delete_expired() == []
    assert [one.id for one in switch.stored_keys()] == [key.id]


def test_a_key_that_an_interrupted_command_has_added_is_deleted_a_day_later(switch: Switch) -> None:
    with time_machine.travel(clock.now(), tick=False) as now:
        key = switch.add(("once",))
        now.shift(UNUSED_KEYS_LIVE)
        assert switch.delete_expired() == []
        now.shift(2)
        assert switch.delete_expired() == [key.id]


def test_a_key_that_no_function_has_used_is_deleted_by_its_command(switch: Switch) -> None:
    key = switch.add(())
    switch.delete(key.id)
    switch.delete(key.id)
    assert switch.store.read() == {}


def test_disabling_leaves_no_key_in_the_switch(switch: Switch) -> None:
    key = switch.add(("once",))
    switch.use(key)
    old = switch.use(None)
    assert old is not None
    assert old.until is not None
    assert read_edge_key() is None
    assert switch.use(None) is None


# --------------------------------------------------------------------------------- CloudFront's API


@dataclass
class KeyValueStores:
    """CloudFront's API for one store."""

    stored: dict[str, str] = field(default_factory=dict)
    version: int = 1
    conflicts: int = 0
    """How many changes another command gets in before this one."""

    def describe_key_value_store(self, *, KvsARN: str) -> dict[str, str]:  # noqa: N803
        return {"ETag": f"v{self.version}"}

    def list_keys(self, *, KvsARN: str, NextToken: str = "") -> dict[str, Any]:  # noqa: N803
        names = sorted(self.stored)
        at = names.index(NextToken) if NextToken else 0
        page = {"Items": [{"Key": name, "Value": self.stored[name]} for name in names[at : at + 1]]}
        return page | ({"NextToken": names[at + 1]} if at + 1 < len(names) else {})

    def put_key(self, *, KvsARN: str, Key: str, Value: str, IfMatch: str) -> None:  # noqa: N803
        self._change(IfMatch, lambda: self.stored.update({Key: Value}))

    def delete_key(self, *, KvsARN: str, Key: str, IfMatch: str) -> None:  # noqa: N803
        self._change(IfMatch, lambda: self.stored.pop(Key))

    def _change(self, version: str, change: Callable[[], object]) -> None:
        if self.conflicts:
            self.conflicts -= 1
            self.version += 1
        if version != f"v{self.version}":
            raise aws.ClientError({"Error": {"Code": "ConflictException"}}, "PutKey")
        change()
        self.version += 1


def test_the_store_of_a_stack_is_read_in_pages_and_changed_in_turn() -> None:
    api = KeyValueStores(conflicts=3)
    store = CloudFrontStore(api, "arn")
    store.put("key-a", "1")
    store.put("key-b", "2")
    assert store.read() == {"key-a": "1", "key-b": "2"}
    store.delete("key-a")
    store.delete("key-a")
    assert store.read() == {"key-b": "2"}


def test_a_store_that_always_changes_is_an_error() -> None:
    with pytest.raises(aws.ClientError):
        CloudFrontStore(KeyValueStores(conflicts=100), "arn").put("key-a", "1")


# --------------------------------------------------------------------------------------- the probes


@pytest.fixture
def probing(switch: Switch, option: SetOption, aws_in_memory: None) -> Probing:
    option("edge_url", "https://edge.example.com")
    key = switch.add(("once",))
    return Probing(
        url="https://edge.example.com",
        switch=switch,
        key=key,
        flags=("once",),
        large_bytes=1,
        slow_s=0,
        test_function=None,
    )


def test_every_assumption_has_a_probe() -> None:
    """U15 is for a front door that does not exist, and U16 shows in the first call to the store."""
    ids = {probe.id for probe in PROBES}
    assert ids == {f"U{number}" for number in range(15)}
    assert len(PROBES) == len(ids)


def test_the_test_events_pass_the_function_that_is_deployed(probing: Probing) -> None:
    run = EdgeRequests(probing.switch.store.read())

    def test_function(event: dict[str, Any]) -> tuple[dict[str, Any], int]:
        result = run.of(event)
        return {"response" if "statusCode" in result else "request": result}, 7

    with pytest.raises(NotTried):
        probes.function_passes_its_vectors(probing)
    probing.test_function = test_function
    assert probes.function_passes_its_vectors(probing) == "7 % of the compute time"
    for utilizations, found in (
        ([7, 99, 7, 99, 7], "7 % of the compute time"),
        ([60, 10, 60, 10, 60], "60 % of the compute time, which is much: please report it"),
    ):
        values = cycle(utilizations)
        probing.test_function = lambda event, values=values: (test_function(event)[0], next(values))
        assert probes.function_passes_its_vectors(probing) == found
    probing.test_function = lambda event: (test_function(event)[0], 80)
    with pytest.raises(Failed, match="80 %"):
        probes.function_passes_its_vectors(probing)
    probing.test_function = lambda _event: ({"request": {}}, 1)
    with pytest.raises(Failed, match="200 instead of 413"):
        probes.function_passes_its_vectors(probing)


@dataclass
class CloudFront:
    """CloudFront's TestFunction."""

    result: dict[str, Any]

    def describe_function(self, *, Name: str, Stage: str) -> dict[str, str]:  # noqa: N803
        assert (Name, Stage) == ("larder-eu-central-1-request", "LIVE")
        return {"ETag": "v1"}

    def test_function(self, **named: Any) -> dict[str, Any]:
        assert (named["IfMatch"], named["Stage"]) == ("v1", "LIVE")
        assert json.loads(named["EventObject"]) == {"a": 1}
        return {"TestResult": self.result}


def test_the_result_of_cloudfronts_test() -> None:
    name = "larder-eu-central-1-request"
    passed = {"FunctionOutput": '{"request": {}}', "ComputeUtilization": "12"}
    assert probes.cloudfront_test(CloudFront(passed), name)({"a": 1}) == ({"request": {}}, 12)
    failed = {"FunctionErrorMessage": "TypeError"}
    with pytest.raises(Failed, match="TypeError"):
        probes.cloudfront_test(CloudFront(failed), name)({"a": 1})


def test_what_probes_announce_is_deleted(probing: Probing) -> None:
    upload = probing.new_upload()
    assert read_entry(probes.OWNER, upload.hash).pending
    probes.clean_up(probing)
    entry = read_entry(probes.OWNER, upload.hash)
    assert not entry.artifact
    assert not entry.pending
