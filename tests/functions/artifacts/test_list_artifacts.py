"""GET /v1/artifacts"""

from datetime import timedelta
from typing import Any

import pytest

from larder import aws, clock
from larder.artifacts.models import Artifact, ArtifactHash, Upload
from larder.artifacts.repository import index
from larder.clock import to_ms
from larder.settings import settings
from larder.tables import ARTIFACTS
from tests.direct_uploads import offer
from tests.proofs.aws_calls import counted
from tests.requests import Cloud, Sender

pytestmark = pytest.mark.usefixtures("partitions")


def pages(send: Sender, limit: int) -> list[dict[str, Any]]:
    found, asking = [], send.asking(limit=str(limit))
    while True:
        reply = asking("GET", "/v1/artifacts")
        assert reply.status == 200, reply
        found.append(reply.json)
        following = reply.json["pagination"]["next"]
        if following is None:
            return found
        asking = send.asking(limit=str(limit), cursor=following)


def hashes(page: dict[str, Any]) -> list[str]:
    return [artifact["hash"] for artifact in page["artifacts"]]


def publish(owner: str, *numbers: int) -> None:
    now = clock.now()
    for number in numbers:
        hash = ArtifactHash(f"a{number:04}")
        artifact = Artifact(
            upload=Upload(owner=owner, hash=hash, id=f"{to_ms(now):012x}{number:016x}"), size_bytes=1, created_at=now
        )
        assert index.publish(artifact, replaces=None, now=now)


def test_named_hashes_come_by_size(cloud: Cloud, manage: Sender) -> None:
    for number, body in enumerate((b"22", b"1", b"333")):
        cloud.send("PUT", f"/v8/artifacts/a{number}", body=body)
    reply = manage.asking(hashes="a1,gone,a2,a2")("GET", "/v1/artifacts")
    assert [(one["hash"], one["size"]) for one in reply.json["artifacts"]] == [("a2", 3), ("a1", 1)]
    assert reply.json["pagination"]["next"] is None
    own = manage.asking(hashes="a1", scope=f"k{'0' * 32}")("GET", "/v1/artifacts")
    assert own.json["artifacts"] == []


@pytest.mark.parametrize(
    "query",
    [{"hashes": ""}, {"hashes": "a,b/c"}, {"hashes": ",".join(map(str, range(101)))}, {"hashes": "a", "limit": "1"}],
)
def test_400_for_other_hashes(manage: Sender, query: dict[str, str]) -> None:
    assert manage.asking(**query)("GET", "/v1/artifacts").status == 400


def test_every_property_of_each_artifact(cloud: Cloud, manage: Sender) -> None:
    headers = {
        "x-artifact-duration": "1234",
        "x-artifact-tag": "QUJD",
        "x-artifact-sha": "abc",
        "x-artifact-dirty-hash": "def",
        "x-artifact-client-ci": "GITHUB_ACTIONS",
        "x-artifact-client-interactive": "0",
    }
    before = clock.now()
    cloud.send("PUT", "/v8/artifacts/a1", body=b"artifact", headers=headers)
    reply = manage("GET", "/v1/artifacts")
    (artifact,) = reply.json["artifacts"]
    assert reply.json["pagination"] == {"count": 1, "next": None, "read": 1}
    created_at = artifact.pop("createdAt")
    assert to_ms(before) <= created_at <= to_ms(clock.now())
    assert artifact == {
        "hash": "a1",
        "size": 8,
        "taskDurationMs": 1234,
        "tag": "QUJD",
        "sha": "abc",
        "dirtyHash": "def",
        "ci": "GITHUB_ACTIONS",
        "interactive": False,
        "writer": {"id": cloud.key.id, "userId": cloud.user.id},
        "expiresAt": created_at + 30 * 24 * 3600 * 1000,
        "lastUsedAt": created_at,
    }


def test_an_empty_list(manage: Sender) -> None:
    reply = manage("GET", "/v1/artifacts")
    assert reply.json == {"artifacts": [], "pagination": {"count": 0, "next": None, "read": 0}}


@pytest.mark.parametrize("limit", [1, 2, 7, 100])
def test_pages_return_every_artifact_once_in_order(cloud: Cloud, manage: Sender, limit: int) -> None:
    stored = [f"a{number}" for number in range(9)]
    for hash in stored:
        cloud.send("PUT", f"/v8/artifacts/{hash}", body=b"artifact")
    # Pending uploads, objects to delete and the totals are in the same partition.
    for hash in ("a0", "a3", "b1", "b2"):
        offer(cloud.send, hash)
    cloud.send("PUT", "/v8/artifacts/a5", body=b"replaced")
    found = pages(manage, limit)
    assert [hash for page in found for hash in hashes(page)] == stored
    assert all(len(hashes(page)) <= limit for page in found)
    assert all(page["pagination"]["count"] == len(hashes(page)) for page in found)


def test_expired_artifacts_are_not_listed(cloud: Cloud, manage: Sender) -> None:
    for hash, days in (("old", 31), ("young", 29)):
        cloud.store(hash, now=clock.now() - timedelta(days=days))
    assert hashes(manage("GET", "/v1/artifacts").json) == ["young"]


def test_only_the_owners_artifacts_are_listed(cloud: Cloud, manage: Sender) -> None:
    publish(cloud.user.id, 1, 2)
    publish(cloud.team.id, 3)
    assert hashes(manage("GET", "/v1/artifacts").json) == ["a0003"]
    assert hashes(Sender(manage.token)("GET", "/v1/artifacts").json) == ["a0001", "a0002"]


def test_an_artifact_of_an_older_version_has_no_user(cloud: Cloud, manage: Sender) -> None:
    cloud.send("PUT", "/v8/artifacts/a1", body=b"artifact")
    aws.dynamodb().update_item(
        TableName=settings().artifacts_table,
        Key=ARTIFACTS.typed_key(index.entry_keys(cloud.team.id, "a1")[0]),
        UpdateExpression="REMOVE user_id",
    )
    (artifact,) = manage("GET", "/v1/artifacts").json["artifacts"]
    assert artifact["writer"] == {"id": cloud.key.id, "userId": None}


def test_the_cost_does_not_depend_on_the_number_of_artifacts(cloud: Cloud, manage: Sender, partitions: int) -> None:
    manage("GET", "/v1/artifacts")
    seen = []
    for more in (range(20), range(20, 300)):
        publish(cloud.team.id, *more)
        with counted() as calls:
            assert len(manage("GET", "/v1/artifacts").json["artifacts"]) == 20
        seen.append(calls.steps)
    assert seen == [[["BatchGetItem"], ["Query"] * partitions]] * 2


@pytest.mark.parametrize(
    "cursor",
    ["", "!", "%C3%A9", "YQ", "I3RvdGFscw", "I2Rpc2NhcmRlZCNhYmM", "YS9i", "YQ==#", "w6k", "A" * 400],
)  # fmt: skip
def test_an_unknown_cursor_is_refused_or_only_sets_the_position(cloud: Cloud, manage: Sender, cursor: str) -> None:
    publish(cloud.team.id, 0, 1)
    reply = manage.asking(cursor=cursor)("GET", "/v1/artifacts")
    if cursor == "YQ":
        assert hashes(reply.json) == ["a0000", "a0001"]
    else:
        assert (reply.status, reply.code) == (400, "bad_request")
        assert reply.message == "cursor: must be the `next` of the previous page"
