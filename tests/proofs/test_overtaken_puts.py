"""The S3 event of an inline upload may arrive before the function that wrote the object has published it.

The event then publishes in its place. Both count the artifact in, and the slower one must take its count back; a quota
with room for one artifact but not for two must not make them lose it.
"""

from collections.abc import Callable
from datetime import timedelta

import pytest

from larder import aws, clock
from larder.artifacts import service
from larder.artifacts.models import Artifact, ArtifactHash, ArtifactMetadata, Totals
from larder.artifacts.repository import read_entry, read_totals
from larder.errors import CachingOverLimit
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
    service.sweep(now=clock.now() + timedelta(hours=1))
    assert object_keys() == [stored.upload.object_key]
    reply = cloud.send("GET", f"/v8/artifacts/{HASH}")
    assert (reply.status, reply.body) == (200, BODY)


def test_the_event_comes_first_and_the_quota_refuses_all_the_same(cloud: Cloud) -> None:
    before_the_next("TransactWriteItems", newest_object_is_announced)
    with pytest.raises(CachingOverLimit):
        store(cloud, 99)
    assert read_totals(cloud.team.id) == Totals()
    assert read_entry(cloud.team.id, HASH).artifact is None
    service.sweep(now=clock.now() + timedelta(hours=1))
    assert object_keys() == []
