"""The S3 event of an inline upload may arrive before the function that wrote the object has published it.

The event then publishes in its place, if the quota has room for both counts: the slower one takes its count back.
Without that room it leaves the artifact to the function, and comes again; what a function left behind is settled then.
"""

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

import pytest

from larder import aws, clock
from larder.artifacts import finalize, service, storage, sweep
from larder.artifacts.models import Artifact, ArtifactHash, ArtifactMetadata, Totals, Upload
from larder.artifacts.repository.index import read_entry
from larder.artifacts.repository.totals import add_to_totals, read_totals
from larder.errors import CachingOverLimit, TryAgain
from larder.hashing import time_ordered_id
from larder.teams.service import change_state
from tests.direct_uploads import announce, object_keys
from tests.requests import Cloud

HASH = ArtifactHash("abc")
BODY = b"x" * 100


def store(cloud: Cloud, quota: int | None, body: bytes = BODY) -> Artifact:
    if quota is not None:
        change_state(cloud.team.id, quota_bytes=quota)
    return service.store(
        cloud.team.id,
        HASH,
        body,
        ArtifactMetadata(),
        writer=cloud.writer,
        replaces=read_entry(cloud.team.id, HASH).artifact,
        quota_bytes=quota,
        now=clock.now(),
    )


def before_the_next(operation: str, deliver: Callable[[], None]) -> None:
    """Let something happen just before the layer's next call of this DynamoDB operation."""
    events, name = aws.dynamodb().meta.events, f"before-call.dynamodb.{operation}"

    def once(**_: object) -> None:
        events.unregister(name, once)
        deliver()

    events.register(name, once)


def newest_object_is_announced() -> None:
    with suppress(TryAgain):  # then the event is delivered again
        announce(max(object_keys()))


@pytest.mark.parametrize("quota", [None, 150, 200])
@pytest.mark.parametrize("replacing", [False, True])
def test_the_event_comes_first_and_the_artifact_stays(
    cloud: Cloud, quota: int | None, replacing: bool
) -> None:
    if replacing:
        store(cloud, None, b"an older artifact")
    # What makes an upload visible: a single write for a new hash, a transaction for a replaced one.
    operation = "TransactWriteItems" if replacing else "PutItem"
    before_the_next(operation, newest_object_is_announced)
    stored = store(cloud, quota)
    assert read_totals(cloud.team.id) == Totals(size_bytes=100, artifacts=1)
    sweep.sweep(now=clock.now() + timedelta(hours=1))
    assert object_keys() == [stored.upload.object_key]
    reply = cloud.send("GET", f"/v8/artifacts/{HASH}")
    assert (reply.status, reply.body) == (200, BODY)


def test_the_event_comes_first_and_the_quota_refuses_all_the_same(cloud: Cloud) -> None:
    before_the_next("TransactWriteItems", newest_object_is_announced)
    with pytest.raises(CachingOverLimit):
        store(cloud, 99)
    assert read_totals(cloud.team.id) == Totals()
    assert read_entry(cloud.team.id, HASH).artifact is None
    sweep.sweep(now=clock.now() + timedelta(hours=1))
    assert object_keys() == []


def test_the_event_finds_room_where_the_function_found_none_and_the_client_has_stored_it(
    cloud: Cloud,
) -> None:
    add_to_totals(cloud.team.id, 100, 1, quota_bytes=None)

    def others_go_and_the_event_comes() -> None:
        add_to_totals(cloud.team.id, -100, -1, quota_bytes=None)
        newest_object_is_announced()

    # The function has been refused by then, and discards its object.
    before_the_next("TransactWriteItems", others_go_and_the_event_comes)
    stored = store(cloud, 150)
    assert object_keys() == [stored.upload.object_key]
    assert cloud.send("GET", f"/v8/artifacts/{HASH}").body == BODY
    assert read_totals(cloud.team.id) == Totals(size_bytes=100, artifacts=1)


class TestAFunctionThatCrashedBetweenStoringAndPublishing:
    @pytest.fixture
    def left(self, cloud: Cloud) -> Upload:
        """Its object; a hundred bytes are counted in for it, and stay so until the totals are compared."""
        upload = Upload(owner=cloud.team.id, hash=HASH, id=time_ordered_id(clock.now()))
        storage.put(upload, BODY, ArtifactMetadata(), cloud.writer)
        add_to_totals(cloud.team.id, 100, 1, quota_bytes=None)
        return upload

    def test_its_artifact_is_published_where_there_is_room(
        self, cloud: Cloud, left: Upload
    ) -> None:
        change_state(cloud.team.id, quota_bytes=200)
        assert finalize.commit(left, now=clock.now()) is not None
        assert cloud.send("GET", f"/v8/artifacts/{HASH}").body == BODY

    def test_without_room_it_is_waited_for_and_then_discarded(
        self, cloud: Cloud, left: Upload
    ) -> None:
        change_state(cloud.team.id, quota_bytes=199)
        with pytest.raises(TryAgain):
            finalize.commit(left, now=clock.now())
        assert finalize.commit(left, now=clock.now() + timedelta(minutes=1)) is None
        assert read_totals(cloud.team.id) == Totals(size_bytes=100, artifacts=1)
        sweep.sweep(now=clock.now() + timedelta(hours=1))
        assert object_keys() == []
