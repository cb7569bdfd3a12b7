"""GET /v1/artifacts/{hash}"""

from larder import clock
from larder.artifacts.models import ArtifactHash
from larder.artifacts.repository.index import read_entry
from larder.clock import to_ms
from tests.conftest import SetOption
from tests.direct_uploads import offer, upload
from tests.requests import Cloud, Sender


def test_every_property_of_an_artifact(cloud: Cloud, manage: Sender) -> None:
    cloud.send("PUT", "/v8/artifacts/abc", body=b"artifact", headers={"x-artifact-duration": "7"})
    reply = manage("GET", "/v1/artifacts/abc")
    assert reply.status == 200
    assert reply.json == manage("GET", "/v1/artifacts").json["artifacts"][0]
    assert (reply.json["size"], reply.json["taskDurationMs"]) == (8, 7)
    assert reply.json["writer"] == {"id": cloud.key.id, "userId": cloud.user.id}


def test_the_last_use_is_returned_if_eviction_depends_on_it(cloud: Cloud, manage: Sender, option: SetOption) -> None:
    option("over_quota", "evict")
    cloud.send("PUT", "/v8/artifacts/abc", body=b"artifact")
    shown = manage("GET", "/v1/artifacts/abc").json
    assert shown["lastUsedAt"] == shown["createdAt"]


def test_a_direct_upload_has_a_writer_but_no_duration(cloud: Cloud, manage: Sender) -> None:
    upload(cloud.send, "abc", b"straight to S3")
    shown = manage("GET", "/v1/artifacts/abc").json
    assert (shown["size"], shown["taskDurationMs"], shown["tag"]) == (14, None, None)
    assert shown["writer"] == {"id": cloud.key.id, "userId": cloud.user.id}
    assert shown["createdAt"] <= to_ms(clock.now())
    assert read_entry(cloud.team.id, ArtifactHash("abc")).pending is None


def test_an_upload_that_has_not_arrived_is_not_an_artifact(cloud: Cloud, manage: Sender) -> None:
    offer(cloud.send, "abc")
    reply = manage("GET", "/v1/artifacts/abc")
    assert (reply.status, reply.code) == (404, "artifact_not_found")


def test_404_for_an_unknown_hash_or_an_artifact_of_another_owner(cloud: Cloud, manage: Sender) -> None:
    Sender(cloud.token, slug="acme")("PUT", "/v8/artifacts/abc", body=b"artifact")
    assert manage("GET", "/v1/artifacts/other").status == 404
    assert Sender(manage.token)("GET", "/v1/artifacts/abc").status == 404
