"""`MaxStoredBytes`: the stored bytes never exceed it, and the allotments of owners add up to what is counted."""

from contextlib import suppress
from datetime import timedelta

import pytest

from larder import clock
from larder.artifacts import rebuild_index, sweep
from larder.artifacts.models import Totals
from larder.artifacts.repository import allotments
from larder.artifacts.repository.allotments import delete_with_allotment, draw, read_allotted, reconcile_allotment
from larder.artifacts.repository.totals import add_to_totals, read_totals, totals_key, try_add_to_totals
from larder.errors import StorageFull
from larder.settings import settings
from larder.tables import ARTIFACTS, Item, commit
from larder.usage.uploads import Uploads
from tests.conftest import SetOption
from tests.direct_uploads import announce, offer, put_object, upload
from tests.requests import Cloud, Sender

pytestmark = pytest.mark.usefixtures("aws_in_memory")

# Nine tenths of 1111 bytes are 1000: the rest is for owners who store less than a thousandth.

MB = 10**6
DAY = timedelta(days=1)


def count(owner: str, size_bytes: int, *, quota_bytes: int | None = None) -> Totals | None:
    today = clock.now().date()
    uploaded = (today, Uploads(count=1, size_bytes=size_bytes))
    return try_add_to_totals(owner, size_bytes, 1, quota_bytes=quota_bytes, uploaded=uploaded, draw=draw)


def put(send: Sender, hash: str, size_bytes: int) -> str:
    """Return `stored` or the code of the refusal."""
    reply = send("PUT", f"/v8/artifacts/{hash}", body=b"x" * size_bytes)
    return "stored" if reply.status == 202 else reply.code


def totals_item(owner: str) -> Item:
    (item,) = ARTIFACTS.get_many([totals_key(owner)])
    return item


def check(*owners: str) -> None:
    """The allotments add up, and each holds exactly what its owner stores and has free."""
    items = [totals_item(owner) for owner in owners]
    for item in items:
        assert item["allotted_bytes"] == item["size_bytes"] + item["free_bytes"]
        assert item["free_bytes"] >= 0
    assert read_allotted() == sum(item["allotted_bytes"] for item in items)


def counted() -> None:
    """The first sweep of a deployment."""
    assert sweep.sweep(now=clock.now()).failed == 0


def test_owners_together_store_up_to_the_limit(cloud: Cloud, personal: Sender, option: SetOption) -> None:
    option("max_stored_bytes", 1111)
    counted()
    assert (put(cloud.send, "a", 600), put(personal, "a", 401)) == ("stored", "storage_full")
    # The team has drawn one byte ahead: a thousandth of the limit.
    assert (put(personal, "a", 399), put(personal, "b", 1)) == ("stored", "storage_full")
    check(cloud.team.id, cloud.user.id)
    assert cloud.send("GET", "/v8/artifacts/a").status == 200
    assert cloud.send("GET", "/v8/artifacts/status").json == {"status": "enabled"}


def test_the_refusal_names_the_option_and_who_can_change_it(cloud: Cloud, option: SetOption) -> None:
    option("max_stored_bytes", 1111)
    reply = cloud.send("PUT", "/v8/artifacts/a", body=b"x" * 1001)
    assert reply.status == 403
    assert "MaxStoredBytes" in reply.json["error"]["message"]
    assert "operator" in reply.json["error"]["message"]


def test_a_small_owner_can_store_when_others_have_filled_the_limit(option: SetOption) -> None:
    option("max_stored_bytes", 1000 * MB)
    counted()
    for team in range(6):
        with suppress(StorageFull):
            for _ in range(20):
                assert count(f"hog{team}", 10 * MB) is not None
    assert 880 * MB < read_allotted() <= 900 * MB
    # A thousandth of the limit, and what an upload draws ahead.
    assert count("small", 900_000) is not None
    with pytest.raises(StorageFull):
        count("small", 10 * MB)
    check("small", *(f"hog{team}" for team in range(5)))


def test_many_small_owners_stay_within_the_limit(option: SetOption) -> None:
    option("max_stored_bytes", 1000 * MB)
    counted()
    assert count("ada", 880 * MB) is not None
    with suppress(StorageFull):
        for number in range(500):
            count(f"small{number}", MB)
    assert 990 * MB < read_allotted() <= 1000 * MB


def test_a_replacement_and_a_deletion_give_bytes_back(cloud: Cloud, manage: Sender, option: SetOption) -> None:
    option("max_stored_bytes", 1111)
    counted()
    assert put(cloud.send, "a", 1000) == "stored"
    assert (put(cloud.send, "a", 300), put(cloud.send, "b", 700)) == ("stored", "stored")
    assert manage("DELETE", "/v1/artifacts/b").status == 200
    assert (put(cloud.send, "c", 701), put(cloud.send, "c", 700)) == ("storage_full", "stored")
    check(cloud.team.id)


def test_a_refused_direct_upload_is_discarded(cloud: Cloud, option: SetOption) -> None:
    option("max_stored_bytes", 1111)
    counted()
    for hash, size_bytes in (("large", 1001), ("small", 1000)):
        key = offer(cloud.send, hash)
        put_object(key, b"x" * size_bytes)
        announce(key)
    assert cloud.send("GET", "/v8/artifacts/large").status == 404
    assert read_totals(cloud.team.id) == Totals(size_bytes=1000, artifacts=1)


@pytest.mark.parametrize("over_quota", ["evict", "refuse"])
def test_the_quota_of_an_owner_still_applies(option: SetOption, over_quota: str) -> None:
    option("over_quota", over_quota)
    assert count("ada", 60, quota_bytes=100) == Totals(size_bytes=60, artifacts=1)
    assert count("ada", 41, quota_bytes=100) is None
    assert count("bob", 101, quota_bytes=100) is None


def test_an_upload_that_is_counted_while_another_draws_stays_within_the_quota_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read, others = allotments._read, [10 * MB]

    def counted_after_the_read(owner: str) -> tuple[Item, Item]:
        found = read(owner)
        while others:
            assert count(owner, others.pop(), quota_bytes=20 * MB) is not None
        return found

    assert count("ada", 60, quota_bytes=20 * MB) is not None
    monkeypatch.setattr(allotments, "_read", counted_after_the_read)
    # It needs more than is free. The other does not.
    assert count("ada", 17 * MB, quota_bytes=20 * MB) is None
    assert read_totals("ada") == Totals(size_bytes=10 * MB + 60, artifacts=2)


def test_another_limit_takes_effect_at_once(option: SetOption) -> None:
    counted()
    assert count("ada", 100 * MB) is not None
    option("max_stored_bytes", 50 * MB)
    with pytest.raises(Exception, match="MaxStoredBytes"):
        count("bob", 1)
    option("max_stored_bytes", 200 * MB)
    assert count("bob", 60 * MB) is not None
    option("max_stored_bytes", 0)
    assert count("bob", 500 * MB) is not None
    option("max_stored_bytes", 600 * MB)
    with pytest.raises(Exception, match="MaxStoredBytes"):
        count("bob", 100 * MB)


def stored_by_an_older_version(owner: str, size_bytes: int) -> None:
    item = {"size_bytes": size_bytes, "artifacts": 1, "sweep_shard": "0", "sweep_at": 0}
    commit(ARTIFACTS.put({"owner": owner, "hash": "#totals", **item}))


def test_data_of_an_older_version_is_counted_by_the_first_sweep(option: SetOption) -> None:
    option("max_stored_bytes", 1000 * MB)
    stored_by_an_older_version("idle", 800 * MB)
    # Before the sweep, uploads can use a tenth of the limit.
    assert count("bob", 90 * MB) is not None
    with pytest.raises(Exception, match="MaxStoredBytes"):
        count("eve", 20 * MB)
    for owner in ("idle", "bob"):
        reconcile_allotment(owner)
    check("idle", "bob")


def test_an_owner_of_an_older_version_uploads_before_the_first_sweep(option: SetOption) -> None:
    option("max_stored_bytes", 1000 * MB)
    stored_by_an_older_version("ada", 900 * MB)
    assert count("ada", MB) == Totals(size_bytes=901 * MB, artifacts=2)
    check("ada")


def test_the_sweep_counts_what_it_finds(cloud: Cloud, personal: Sender, option: SetOption) -> None:
    for send in (cloud.send, personal):
        assert put(send, "a", 400) == "stored"
    for owner in (cloud.team.id, cloud.user.id):
        older = {"allotted_bytes": None, "free_bytes": None}
        commit(ARTIFACTS.update(*totals_key(owner), set=older))
    commit(ARTIFACTS.delete("#deployment", "#allotted"))
    option("max_stored_bytes", 1111)
    counted()
    check(cloud.team.id, cloud.user.id)
    assert (put(personal, "b", 201), put(personal, "b", 200)) == ("storage_full", "stored")


def test_the_sweep_collects_what_owners_have_left_over(option: SetOption) -> None:
    counted()
    assert count("ada", 900 * MB) is not None
    add_to_totals("ada", -900 * MB, -1)
    option("max_stored_bytes", 1000 * MB)
    with pytest.raises(Exception, match="MaxStoredBytes"):
        count("bob", 890 * MB)
    counted()
    assert count("bob", 890 * MB) is not None
    check("ada", "bob")


def test_an_upload_that_an_older_version_counts_is_published() -> None:
    counted()
    assert count("ada", 5 * MB) is not None
    # Functions of the previous version run for some seconds during an update.
    commit(ARTIFACTS.update(*totals_key("ada"), add={"size_bytes": 100 * MB}))
    reconcile_allotment("ada")
    check("ada")


def test_a_rebuild_of_the_index_is_never_refused(cloud: Cloud, option: SetOption) -> None:
    option("max_stored_bytes", 1111)
    counted()
    upload(cloud.send, "a", b"x" * 2000)
    rebuild_index.rebuild_index(now=clock.now())
    assert read_totals(cloud.team.id).size_bytes == 2000
    assert put(cloud.send, "b", 1) == "storage_full"
    reconcile_allotment(cloud.team.id)
    check(cloud.team.id)


def test_a_deleted_owner_gives_everything_back() -> None:
    counted()
    assert count("ada", 5 * MB) is not None
    assert not delete_with_allotment("ada")
    add_to_totals("ada", -5 * MB, -1)
    assert delete_with_allotment("ada")
    assert read_allotted() == 0


def test_few_uploads_draw_from_the_deployment() -> None:
    counted()
    draws, last = 0, 0
    for _ in range(300):
        assert count("ada", 4 * MB) is not None
        draws, last = draws + (read_allotted() != last), read_allotted()
    assert draws < 50
    assert last - 1200 * MB <= settings().max_stored_bytes // 1000
    check("ada")
