"""The S3 event of an inline upload can arrive before the function that wrote the object has published it.

If the quota has room for both counts, the function of the event publishes the artifact, and the slower one takes its
count back. Otherwise the event leaves the artifact to the other function and is delivered again. By then, Larder
publishes or discards an upload whose function ended early.
"""

from collections.abc import Callable
from contextlib import ExitStack, suppress
from datetime import timedelta

import pytest

from larder import aws, clock
from larder.artifacts import publish, storage, sweep
from larder.artifacts.models import Artifact, ArtifactHash, ArtifactMetadata, Totals, Upload, View
from larder.artifacts.repository.index import read_entry
from larder.artifacts.repository.totals import add_to_totals, read_totals
from larder.errors import CachingOverLimit, TryAgain
from larder.hashing import time_ordered_id
from larder.teams.state import change_state
from tests.direct_uploads import announce, object_keys
from tests.hooks import hooked
from tests.requests import Cloud

HASH = ArtifactHash("abc")
BODY = b"x" * 100


def store(cloud: Cloud, quota: int | None, body: bytes = BODY) -> Artifact:
    return cloud.store(HASH, body, view=View(quota_bytes=quota))


def before_the_next(operation: str, deliver: Callable[[], None]) -> None:
    """Run a function just before the layer's next call of this DynamoDB operation."""

    def once(**_: object) -> None:
        interruption.close()
        deliver()

    interruption = ExitStack()
    interruption.enter_context(hooked(f"before-call.dynamodb.{operation}", once, aws.dynamodb()))


def newest_object_is_announced() -> None:
    with suppress(TryAgain):  # then the event is delivered again
        announce(max(object_keys()))


@pytest.mark.parametrize("quota", [None, 150, 200])
@pytest.mark.parametrize("replacing", [False, True])
def test_an_early_event_keeps_the_artifact(cloud: Cloud, quota: int | None, replacing: bool) -> None:
    if replacing:
        store(cloud, None, b"an older artifact")
    if quota is not None:
        change_state(cloud.team.id, quota_bytes=quota)
    # A single write publishes a new hash. A transaction publishes a replacement.
    operation = "TransactWriteItems" if replacing else "PutItem"
    before_the_next(operation, newest_object_is_announced)
    stored = store(cloud, quota)
    assert read_totals(cloud.team.id) == Totals(size_bytes=100, artifacts=1)
    sweep.sweep(now=clock.now() + timedelta(hours=1))
    assert object_keys() == [stored.upload.object_key]
    reply = cloud.send("GET", f"/v8/artifacts/{HASH}")
    assert (reply.status, reply.body) == (200, BODY)


@pytest.mark.usefixtures("refusing")
def test_an_early_event_does_not_bypass_the_quota(cloud: Cloud) -> None:
    change_state(cloud.team.id, quota_bytes=99)
    before_the_next("TransactWriteItems", newest_object_is_announced)
    with pytest.raises(CachingOverLimit):
        store(cloud, 99)
    assert read_totals(cloud.team.id) == Totals()
    assert read_entry(cloud.team.id, HASH).artifact is None
    sweep.sweep(now=clock.now() + timedelta(hours=1))
    assert object_keys() == []


@pytest.mark.usefixtures("refusing")
def test_an_event_publishes_once_the_quota_has_space(cloud: Cloud) -> None:
    add_to_totals(cloud.team.id, 100, 1)
    change_state(cloud.team.id, quota_bytes=150)

    def others_go_and_the_event_comes() -> None:
        add_to_totals(cloud.team.id, -100, -1)
        newest_object_is_announced()

    # By then, the function was refused and has discarded its object.
    before_the_next("TransactWriteItems", others_go_and_the_event_comes)
    stored = store(cloud, 150)
    assert object_keys() == [stored.upload.object_key]
    assert cloud.send("GET", f"/v8/artifacts/{HASH}").body == BODY
    assert read_totals(cloud.team.id) == Totals(size_bytes=100, artifacts=1)


@pytest.mark.usefixtures("refusing")
class TestAFunctionThatCrashedBetweenStoringAndPublishing:
    @pytest.fixture
    def left(self, cloud: Cloud) -> Upload:
        """Its object. Its hundred bytes stay in the totals until the sweep compares them."""
        upload = Upload(owner=cloud.team.id, hash=HASH, id=time_ordered_id(clock.now()))
        storage.put(upload, BODY, ArtifactMetadata(), cloud.writer)
        add_to_totals(cloud.team.id, 100, 1)
        return upload

    def test_its_artifact_is_published_if_there_is_space(self, cloud: Cloud, left: Upload) -> None:
        change_state(cloud.team.id, quota_bytes=200)
        assert publish.publish(left, now=clock.now()) is not None
        assert cloud.send("GET", f"/v8/artifacts/{HASH}").body == BODY

    def test_without_room_the_event_waits_and_then_discards_it(self, cloud: Cloud, left: Upload) -> None:
        change_state(cloud.team.id, quota_bytes=199)
        with pytest.raises(TryAgain):
            publish.publish(left, now=clock.now())
        assert publish.publish(left, now=clock.now() + timedelta(minutes=1)) is None
        assert read_totals(cloud.team.id) == Totals(size_bytes=100, artifacts=1)
        sweep.sweep(now=clock.now() + timedelta(hours=1))
        assert object_keys() == []
