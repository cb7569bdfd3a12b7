"""Uploads and downloads by the edge: OPTIONS and GET on /v8/artifacts/{hash}, if the deployment has one"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from threading import Barrier
from urllib.parse import parse_qsl, urlsplit

import pytest
import time_machine

from larder import aws, clock
from larder.api_keys.keys import create_key
from larder.api_keys.properties import NewKey
from larder.artifacts.models import ArtifactHash
from larder.artifacts.repository.index import read_entry
from larder.instance import restart
from larder.settings import edge_key_file, settings
from larder.signing import put_edge_key
from larder.teams.models import Unsigned
from larder.teams.protection import ProtectionChange, change_protection
from larder.teams.state import change_state
from tests.conftest import SetOption
from tests.direct_uploads import PREFLIGHT, announce, offer
from tests.edge.requests import KEY, TAG, EdgeRequests, refusal, values
from tests.faults import answering, error
from tests.hooks import hooked
from tests.proofs.aws_calls import counted
from tests.requests import Cloud, Reply, Sender
from tests.trust.scene import new_key

EDGE = "https://edge.example.com"
ALLOWED = "access-control-allow-headers"
LARGE = bytes(300_000)


@pytest.fixture
def edge(cloud: Cloud, option: SetOption) -> EdgeRequests:
    """A deployment whose edge is in use, and its request function."""
    option("edge_url", EDGE)
    put_edge_key(KEY)
    restart()
    return EdgeRequests()


def preflight(send: Sender, hash: str = "abc", user_agent: str = "turbo 2.11.11") -> Reply:
    headers = {**PREFLIGHT, "user-agent": user_agent}
    return send("OPTIONS", f"/v8/artifacts/{hash}", headers=headers)


def location(reply: Reply) -> str:
    return reply.headers["location"]


def parameters(url: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(url).query))


def store_by_edge(send: Sender, hash: str, body: bytes, **metadata: str) -> str:
    """Upload as the edge does. Return the object's key."""
    key = offer(send, hash)
    bucket = settings().artifacts_bucket
    aws.s3().put_object(Bucket=bucket, Key=key, Body=body, Metadata=metadata)
    return key


def test_an_upload_goes_to_the_edge(cloud: Cloud, edge: EdgeRequests) -> None:
    reply = preflight(cloud.send)
    assert reply.status == 204
    assert ALLOWED not in reply.headers
    url = location(reply)
    assert url.startswith(f"{EDGE}/artifacts/{cloud.team.id}/abc/")
    passed = edge("PUT", url, {"content-length": "5", "x-artifact-tag": TAG})
    assert values(passed)["x-amz-meta-tag"] == TAG
    pending = read_entry(cloud.team.id, ArtifactHash("abc")).pending
    assert pending is not None
    assert passed["uri"] == f"/{pending.upload.object_key}"


def test_a_large_download_is_redirected_to_the_edge(cloud: Cloud, edge: EdgeRequests) -> None:
    announce(store_by_edge(cloud.send, "abc", LARGE, tag=TAG, **{"duration-ms": "17"}))
    artifact = read_entry(cloud.team.id, ArtifactHash("abc")).artifact
    assert artifact is not None
    reply = cloud.send("GET", "/v8/artifacts/abc")
    assert (reply.status, reply.headers["x-artifact-tag"]) == (302, TAG)
    for method in ("GET", "HEAD"):
        passed = edge(method, location(reply))
        assert passed["uri"] == f"/{artifact.upload.object_key}"
        assert passed["querystring"] == {"versionId": {"value": artifact.version}}
    assert refusal(edge("PUT", location(reply), {"content-length": "5"}))[0] == 404


def test_a_signed_artifact_is_not_forced_through_the_function(
    cloud: Cloud, edge: EdgeRequests, option: SetOption
) -> None:
    cloud.send("PUT", "/v8/artifacts/abc", body=LARGE, headers={"x-artifact-tag": TAG})
    assert cloud.send("GET", "/v8/artifacts/abc").status == 302
    option("edge_url", "")
    reply = cloud.send("GET", "/v8/artifacts/abc")
    assert (reply.status, reply.body) == (200, LARGE)


def test_a_small_artifact_is_still_in_the_reply(cloud: Cloud, edge: EdgeRequests) -> None:
    cloud.send("PUT", "/v8/artifacts/abc", body=b"small", headers={"x-artifact-tag": TAG})
    assert cloud.send("GET", "/v8/artifacts/abc").body == b"small"


def test_with_tagged_downloads_only_signed_artifacts_pass_the_edge(
    cloud: Cloud, edge: EdgeRequests, option: SetOption
) -> None:
    option("edge_downloads", "tagged")
    cloud.send("PUT", "/v8/artifacts/signed", body=LARGE, headers={"x-artifact-tag": TAG})
    cloud.send("PUT", "/v8/artifacts/plain", body=LARGE)
    assert location(cloud.send("GET", "/v8/artifacts/signed")).startswith(EDGE)
    assert "X-Amz-Signature=" in location(cloud.send("GET", "/v8/artifacts/plain"))
    assert location(preflight(cloud.send)).startswith(EDGE)


def test_the_index_keeps_what_an_upload_says_of_itself(cloud: Cloud, edge: EdgeRequests) -> None:
    key = store_by_edge(*(cloud.send, "abc", b"body"), tag=TAG, sha="abc1", ci="GITHUB_ACTIONS", interactive="0")
    announce(key)
    artifact = read_entry(cloud.team.id, ArtifactHash("abc")).artifact
    assert artifact is not None
    metadata = artifact.metadata
    assert (metadata.tag, metadata.sha, metadata.ci) == (TAG, "abc1", "GITHUB_ACTIONS")
    assert (metadata.interactive, artifact.writer) == (False, cloud.writer)


def test_invalid_metadata_of_an_object_counts_as_missing(cloud: Cloud, edge: EdgeRequests) -> None:
    wrong = {"tag": "a" * 601, "sha": "-", "dirty-hash": "a" * 129, "ci": "c" * 51}
    announce(store_by_edge(cloud.send, "abc", b"body", **wrong, **{"duration-ms": "9" * 12}))
    artifact = read_entry(cloud.team.id, ArtifactHash("abc")).artifact
    assert artifact is not None
    metadata = artifact.metadata
    assert (metadata.tag, metadata.sha, metadata.dirty_hash) == (None, None, None)
    assert (metadata.ci, metadata.duration_ms) == (None, None)


def test_the_writer_is_in_the_key_and_not_in_the_metadata(cloud: Cloud, edge: EdgeRequests) -> None:
    forged = {"writer": "x" * 32, "user-id": "y" * 32}
    announce(store_by_edge(cloud.send, "abc", b"body", **forged))
    artifact = read_entry(cloud.team.id, ArtifactHash("abc")).artifact
    assert artifact is not None
    assert artifact.writer == cloud.writer


def room(send: Sender, hash: str = "new") -> int:
    return int(parameters(location(preflight(send, hash)))["m"])


def test_an_address_takes_as_much_as_the_quota_has_left(
    cloud: Cloud, edge: EdgeRequests, option: SetOption, refusing: None
) -> None:
    change_state(cloud.team.id, quota_bytes=1000)
    assert room(cloud.send) == 1000
    cloud.send("PUT", "/v8/artifacts/abc", body=bytes(600))
    assert room(cloud.send) == 400
    # An upload of the same hash replaces it.
    assert room(cloud.send, "abc") == 1000
    option("max_upload_bytes", 300)
    assert room(cloud.send) == 300
    url = location(preflight(cloud.send))
    assert refusal(edge("PUT", url, {"content-length": "301"})) == (413, "too_large")


def test_a_deployment_that_evicts_makes_room_up_to_the_quota(
    cloud: Cloud, edge: EdgeRequests, option: SetOption
) -> None:
    change_state(cloud.team.id, quota_bytes=1000)
    cloud.send("PUT", "/v8/artifacts/abc", body=bytes(600))
    assert room(cloud.send) == 1000
    change_state(cloud.team.id, default_quota=True)
    option("default_quota_bytes", 0)
    assert room(cloud.send) == settings().max_upload_bytes


def protect(cloud: Cloud) -> None:
    change = ProtectionChange(protected=True, keep_stored=True)
    change_protection(cloud.team.id, change, by=None)


def test_an_own_scope_takes_its_share_of_the_quota(
    cloud: Cloud, edge: EdgeRequests, option: SetOption, refusing: None
) -> None:
    protect(cloud)
    option("scoped_share", 30)
    change_state(cloud.team.id, quota_bytes=1000)
    assert room(cloud.send) == 60
    for size in (60, 60, 60, 60, 30):
        assert new_key(cloud)("PUT", "/v8/artifacts/abc", body=bytes(size)).status == 202
    assert room(cloud.send) == 30


def test_an_upload_to_an_own_scope_goes_to_its_key(cloud: Cloud, edge: EdgeRequests) -> None:
    protect(cloud)
    url = location(preflight(cloud.send))
    assert urlsplit(url).path.split("/")[3].startswith("abc.")
    assert values(edge("PUT", url, {"content-length": "5"}))
    announce(store_by_edge(cloud.send, "abc", LARGE, tag=TAG))
    assert location(cloud.send("GET", "/v8/artifacts/abc")).startswith(EDGE)


def test_a_team_that_requires_signatures_can_upload_to_the_edge(
    cloud: Cloud, edge: EdgeRequests, option: SetOption
) -> None:
    change_protection(cloud.team.id, ProtectionChange(protected=False, unsigned=Unsigned.REFUSE), by=None)
    announce(store_by_edge(cloud.send, "signed", LARGE, tag=TAG))
    assert cloud.send("GET", "/v8/artifacts/signed").status == 302
    option("edge_url", "")
    assert "location" not in preflight(cloud.send).headers


def test_an_unsigned_upload_does_not_replace_a_signed_artifact_of_such_a_team(cloud: Cloud, edge: EdgeRequests) -> None:
    change_protection(cloud.team.id, ProtectionChange(protected=False, unsigned=Unsigned.REFUSE), by=None)
    announce(store_by_edge(cloud.send, "abc", LARGE, tag=TAG))
    announce(store_by_edge(cloud.send, "abc", b"unsigned"))
    artifact = read_entry(cloud.team.id, ArtifactHash("abc")).artifact
    assert artifact is not None
    assert artifact.metadata.tag == TAG


@pytest.mark.parametrize(
    ("user_agent", "direct"),
    [
        ("turbo 2.11.11", True),
        ("turbo 2.10.13", True),
        ("turbo 2.10.12", True),
        ("turbo 2.2.3", True),
        ("turbo 2.2.2", False),
        ("turbo 2.1.3", False),
        ("turbo 1.13.4", False),
        ("curl/8.5.0", True),
    ],
)
def test_older_clients_upload_to_the_edge_with_a_key_of_one_team(
    cloud: Cloud, edge: EdgeRequests, user_agent: str, direct: bool
) -> None:
    # Their preflight names no team.
    reply = preflight(Sender(cloud.token), user_agent=user_agent)
    assert reply.status == 204
    assert ("location" in reply.headers) is direct
    assert (ALLOWED in reply.headers) is not direct
    if direct:
        url = location(reply) + "&teamId=team_x&slug=acme"
        passed = edge("PUT", url, {"content-length": "5"})
        assert passed["uri"].startswith(f"/artifacts/{cloud.team.id}/")


@pytest.mark.parametrize("heat", ["cold", "warm"])
def test_older_clients_upload_through_the_function_with_a_key_of_all_teams(
    cloud: Cloud, edge: EdgeRequests, heat: str
) -> None:
    _, token = create_key(NewKey(user_id=cloud.user.id), now=clock.now())
    send = Sender(token)
    if heat == "warm":
        assert send("GET", "/v8/artifacts/status").status == 200
    reply = preflight(send, user_agent="turbo 2.10.12")
    assert (reply.status, reply.headers[ALLOWED]) == (204, "Authorization")
    assert "location" not in reply.headers


def test_an_unknown_token_of_an_older_client_is_left_to_the_request_itself(edge: EdgeRequests) -> None:
    for token in ("k" * 64, "s" * 32):
        reply = preflight(Sender(token), user_agent="turbo 2.10.12")
        assert (reply.status, reply.headers[ALLOWED]) == (204, "Authorization")


def test_without_a_key_clients_get_presigned_urls(cloud: Cloud, edge: EdgeRequests) -> None:
    put_edge_key(None)
    restart()
    cloud.send("PUT", "/v8/artifacts/large", body=LARGE)
    assert "X-Amz-Signature=" in location(preflight(cloud.send))
    assert "X-Amz-Signature=" in location(cloud.send("GET", "/v8/artifacts/large"))
    assert "location" not in preflight(cloud.send, user_agent="turbo 2.10.12").headers


def test_the_key_is_kept_for_five_minutes(cloud: Cloud, edge: EdgeRequests) -> None:
    with time_machine.travel(clock.now(), tick=False) as traveller:
        assert location(preflight(cloud.send)).startswith(EDGE)
        put_edge_key(None)
        traveller.shift(timedelta(seconds=299))
        assert location(preflight(cloud.send)).startswith(EDGE)
        traveller.shift(timedelta(seconds=1))
        assert "X-Amz-Signature=" in location(preflight(cloud.send))


@pytest.mark.parametrize(
    "answer",
    [error("AccessDeniedException"), error("InternalServiceError", 500), error("ThrottlingException")],
    ids=["refused", "down", "throttled"],
)
def test_an_unreadable_secret_falls_back_to_presigned_urls(
    cloud: Cloud, edge: EdgeRequests, answer: tuple[int, dict[str, object]], capsys: pytest.CaptureFixture[str]
) -> None:
    with time_machine.travel(clock.now(), tick=False) as traveller:
        with answering("secrets-manager", "GetSecretValue", answer) as calls:
            assert "X-Amz-Signature=" in location(preflight(cloud.send))
            read = len(calls)
            assert read > 0
            assert "X-Amz-Signature=" in location(preflight(cloud.send))
            assert len(calls) == read
        assert capsys.readouterr().out.count('"EdgeKeyUnreadable": 1') == 1
        traveller.shift(timedelta(seconds=60))
        assert location(preflight(cloud.send)).startswith(EDGE)


@pytest.mark.parametrize("edge_key", ["", [], {"id": "a"}, {"key": "b"}, "text", 5])
def test_a_damaged_key_falls_back_to_presigned_urls(cloud: Cloud, edge: EdgeRequests, edge_key: object) -> None:
    arn = settings().signing_secret
    stored = {**json.loads(aws.read_secret(arn)[0]), "edge": edge_key}
    aws.write_secret(arn, json.dumps(stored))
    assert "X-Amz-Signature=" in location(preflight(cloud.send))


@pytest.mark.parametrize("heat", ["cold", "warm"])
@pytest.mark.parametrize("method", ["OPTIONS", "GET"])
def test_the_key_costs_no_round_trip(
    cloud: Cloud, edge: EdgeRequests, option: SetOption, method: str, heat: str
) -> None:
    cloud.send("PUT", "/v8/artifacts/large", body=LARGE)
    trips = []
    for url in ("", EDGE):
        restart()
        option("edge_url", url)
        if heat == "warm":
            cloud.send("HEAD", "/v8/artifacts/large")
        with counted() as calls, reads_of_the_secret() as reads:
            reply = cloud.send(method, "/v8/artifacts/large", headers=PREFLIGHT)
        assert location(reply).startswith(EDGE) is bool(url)
        assert len(reads) == bool(url)
        trips.append(calls.sequential)
    assert trips[0] == trips[1]


@contextmanager
def reads_of_the_secret() -> Iterator[list[str]]:
    reads: list[str] = []
    manager = aws.secrets_manager()
    with hooked("before-send", lambda **_: reads.append("GetSecretValue"), manager):
        yield reads


def test_the_key_is_read_while_the_first_batch_is(cloud: Cloud, edge: EdgeRequests) -> None:
    both = Barrier(2, timeout=20)
    met: set[str] = set()

    def meet(event_name: str, **_: object) -> None:
        service = event_name.split(".")[1]
        if service not in met:
            met.add(service)
            both.wait()

    with hooked("before-send", meet, aws.dynamodb(), aws.secrets_manager()):
        assert location(preflight(cloud.send)).startswith(EDGE)
    assert len(met) == 2


def test_a_damaged_file_of_a_local_cloud_falls_back_to_presigned_urls(
    cloud: Cloud, edge: EdgeRequests, environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    switch = tmp_path / "switch.json"
    environment.setenv("LARDER_EDGE_KEY", str(switch))
    edge_key_file.cache_clear()
    for content, uses_edge in (("{", False), (json.dumps({"id": "a", "key": KEY.key}), True)):
        switch.write_text(content)
        assert location(preflight(cloud.send)).startswith(EDGE) is uses_edge
