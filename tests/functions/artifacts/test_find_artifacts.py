"""GET /v1/artifacts with filters, and in the order of uploads"""

from datetime import datetime, timedelta
from typing import Any

import pytest

from larder import clock
from larder.actor import Actor
from larder.artifacts import sweep
from larder.artifacts.models import Artifact, ArtifactHash, ArtifactMetadata, Upload
from larder.artifacts.repository import index
from larder.artifacts.repository.table import partition_of
from larder.artifacts.search import SEARCH_PAGE_LENGTH, SEARCH_PAGES
from larder.clock import to_ms
from larder.hashing import random_id
from larder.settings import settings
from larder.tables import ARTIFACTS, commit
from larder.web.queries.artifacts import cursor_of
from tests.bulk import put_all
from tests.direct_uploads import offer
from tests.processor_time import processor_time
from tests.proofs.aws_calls import counted
from tests.requests import Cloud, Sender

pytestmark = pytest.mark.usefixtures("partitions")

NOW = clock.now()
MOST_READ = SEARCH_PAGES * SEARCH_PAGE_LENGTH
HOUR = timedelta(hours=1)


def publish(
    cloud: Cloud,
    hash: str,
    *,
    at: datetime = NOW,
    writer: Actor | None = None,
    ci: str | None = None,
    scope: str | None = None,
) -> None:
    upload = Upload(
        owner=cloud.team.id,
        hash=ArtifactHash(hash),
        id=f"{to_ms(at):012x}{random_id(16).encode().hex()[:16]}",
        scope=scope,
    )
    artifact = Artifact(upload=upload, size_bytes=1, created_at=at, writer=writer, metadata=ArtifactMetadata(ci=ci))
    assert index.publish(artifact, replaces=None, now=at)


def stored(cloud: Cloud, hash: str) -> dict[str, Any]:
    """The item of an artifact, for tests with many of them."""
    at = to_ms(NOW)
    item = {"owner": partition_of(cloud.team.id, hash), "hash": hash, "size_bytes": 1, "created_at": at}
    return {**item, "upload_id": f"{at:012x}{0:016x}"}


def found(manage: Sender, **query: str) -> list[str]:
    """The hashes on all pages of two artifacts."""
    hashes: list[str] = []
    asking = manage.asking(limit="2", **query)
    cursor: dict[str, str] = {}
    while True:
        reply = asking.asking(**cursor)("GET", "/v1/artifacts")
        assert reply.status == 200, reply
        page = reply.json["artifacts"]
        assert len(page) <= 2
        hashes += [one["hash"] for one in page]
        following = reply.json["pagination"]["next"]
        if following is None:
            return hashes
        cursor = {"cursor": following}


def test_the_newest_come_first(cloud: Cloud, manage: Sender) -> None:
    for number, hash in enumerate(["b", "d", "a", "e", "c"]):
        publish(cloud, hash, at=NOW + timedelta(minutes=number))
    assert found(manage, order="uploaded") == ["c", "e", "a", "d", "b"]
    assert found(manage) == found(manage, order="hash") == ["a", "b", "c", "d", "e"]


def test_artifacts_of_the_same_millisecond_are_listed_once(cloud: Cloud, manage: Sender) -> None:
    for hash in "abcde":
        publish(cloud, hash)
    assert sorted(found(manage, order="uploaded")) == ["a", "b", "c", "d", "e"]


def test_offered_uploads_and_deleted_artifacts_are_not_in_the_order_of_uploads(cloud: Cloud, manage: Sender) -> None:
    publish(cloud, "a")
    publish(cloud, "b", at=NOW + HOUR)
    offer(cloud.send, "c")
    assert manage("DELETE", "/v1/artifacts/b").status == 200
    assert found(manage, order="uploaded") == ["a"]


@pytest.mark.parametrize("order", ["hash", "uploaded"])
def test_hashes_with_a_prefix(cloud: Cloud, manage: Sender, order: str) -> None:
    for hash in ("a1", "ab1", "ab2", "ab3", "ac", "b"):
        publish(cloud, hash)
    assert sorted(found(manage, prefix="ab", order=order)) == ["ab1", "ab2", "ab3"]
    assert found(manage, prefix="zz", order=order) == []


@pytest.mark.parametrize("order", ["hash", "uploaded"])
def test_artifacts_of_a_writer(cloud: Cloud, manage: Sender, order: str) -> None:
    key, user = random_id(), random_id()
    for number in range(5):
        publish(cloud, f"a{number}", writer=Actor(key if number % 2 else random_id(), user))
    publish(cloud, "b")
    assert sorted(found(manage, writer=key, order=order)) == ["a1", "a3"]
    assert len(found(manage, writer=user, order=order)) == 5


def test_artifacts_of_a_ci_vendor(cloud: Cloud, manage: Sender) -> None:
    publish(cloud, "a", ci="GITHUB_ACTIONS")
    publish(cloud, "b", ci="GITLAB")
    publish(cloud, "c")
    assert found(manage, ci="github-actions") == ["a"]


@pytest.mark.parametrize("order", ["hash", "uploaded"])
def test_artifacts_of_a_time(cloud: Cloud, manage: Sender, order: str) -> None:
    for hash, hours in (("a", 0), ("b", 1), ("c", 2), ("d", 3)):
        publish(cloud, hash, at=NOW + hours * HOUR)
    since, until = str(to_ms(NOW + HOUR)), str(to_ms(NOW + 3 * HOUR))
    period = {"from": since, "until": until}
    assert sorted(found(manage, order=order, **period)) == ["b", "c"]
    assert sorted(found(manage, order=order, **{"from": until})) == ["d"]
    assert sorted(found(manage, order=order, until=since)) == ["a"]


def test_filters_are_combined_and_respect_scopes(cloud: Cloud, manage: Sender) -> None:
    writer = Actor(random_id())
    publish(cloud, "a1", writer=writer)
    publish(cloud, "a2", writer=writer, scope=f"k{random_id()}")
    publish(cloud, "b1", writer=writer)
    asked = {"writer": writer.credential_id, "prefix": "a"}
    assert found(manage, **asked) == ["a1"]
    assert found(manage, scope="all", **asked) == ["a1", "a2"]


@pytest.mark.slow
def test_a_search_reads_a_limited_number_of_artifacts(cloud: Cloud, manage: Sender, partitions: int) -> None:
    items = (stored(cloud, f"a{number:04}") for number in range(MOST_READ))
    put_all(settings().artifacts_table, items)
    writer = Actor(random_id())
    publish(cloud, "b", writer=writer)
    asking = manage.asking(writer=writer.credential_id)
    with counted() as calls, processor_time() as spent:
        first = asking("GET", "/v1/artifacts").json
    # Eight partitions take eight times the queries.
    assert spent.s < (1 if partitions == 1 else 2)
    queries = len([call for call in calls.made if call.operation == "Query"])
    assert SEARCH_PAGES <= queries / partitions <= SEARCH_PAGES * 1.2
    assert (first["artifacts"], first["pagination"]["read"]) == ([], MOST_READ)
    second = asking.asking(cursor=first["pagination"]["next"])("GET", "/v1/artifacts").json
    assert [artifact["hash"] for artifact in second["artifacts"]] == ["b"]


def test_artifacts_of_an_older_version_enter_the_order_at_the_daily_check(cloud: Cloud, manage: Sender) -> None:
    cloud.store("old", now=NOW - HOUR)
    cloud.store("new", now=NOW)
    commit(ARTIFACTS.update(*index.entry_keys(cloud.team.id, "old")[0], set={"uploaded_at": None}))
    assert found(manage, order="uploaded") == ["new"]
    assert found(manage) == ["new", "old"]
    assert sweep.sweep(now=clock.now()).totals_checked == 1
    assert found(manage, order="uploaded") == ["new", "old"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"order": "size"}, "order"),
        ({"prefix": "a/b"}, "prefix"),
        ({"writer": "bob"}, "writer"),
        ({"ci": "x" * 51}, "ci"),
        ({"from": "yesterday"}, "from"),
        ({"until": "-1"}, "until"),
        ({"from": "2", "until": "2"}, "from"),
        ({"order": "uploaded", "cursor": "YTE"}, "cursor"),
        ({"since": "2"}, "since"),
    ],
)
def test_400_for_a_wrong_filter(manage: Sender, query: dict[str, Any], field: str) -> None:
    reply = manage.asking(**query)("GET", "/v1/artifacts")
    assert (reply.status, reply.code) == (400, "bad_request")
    assert reply.message.startswith(field)


@pytest.mark.parametrize("place", ["0", "99999999999999"])
def test_a_cursor_outside_of_the_time_only_sets_the_position(cloud: Cloud, manage: Sender, place: str) -> None:
    publish(cloud, "a")
    cursor = cursor_of(f"{place}@a")
    assert cursor is not None
    period = {"from": str(to_ms(NOW - HOUR)), "until": str(to_ms(NOW + HOUR))}
    reply = manage.asking(order="uploaded", cursor=cursor, **period)("GET", "/v1/artifacts")
    assert reply.status == 200
    hashes = [artifact["hash"] for artifact in reply.json["artifacts"]]
    assert hashes == ([] if place == "0" else ["a"])
