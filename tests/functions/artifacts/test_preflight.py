"""OPTIONS on the paths of the cache"""

from urllib.parse import parse_qs, urlsplit

import pytest

from larder.artifacts.models import ArtifactHash
from larder.artifacts.repository.index import read_entry
from larder.settings import settings
from larder.teams.models import CachingStatus
from larder.teams.service import change_state
from tests.direct_uploads import PREFLIGHT, offer, put_object
from tests.requests import Cloud, Sender

ALLOWED = "access-control-allow-headers"


def test_an_announced_put_is_sent_straight_to_s3(cloud: Cloud) -> None:
    reply = cloud.send("OPTIONS", "/v8/artifacts/abc", headers=PREFLIGHT)
    location = urlsplit(reply.headers["location"])
    assert reply.status == 204
    assert location.netloc == f"{settings().artifacts_bucket}.s3.eu-central-1.amazonaws.com"
    assert location.path.startswith(f"/artifacts/{cloud.team.id}/abc/")
    signature = parse_qs(location.query)
    assert signature["X-Amz-SignedHeaders"] == ["host"]
    assert signature["X-Amz-Expires"] == ["600"]


def test_s3_refuses_a_token_beside_a_signature_so_the_client_is_not_asked_for_one(
    send: Sender,
) -> None:
    assert ALLOWED not in send("OPTIONS", "/v8/artifacts/abc", headers=PREFLIGHT).headers


def test_the_upload_is_noted_with_the_key_that_may_make_it(cloud: Cloud) -> None:
    key = offer(cloud.send, "abc")
    pending = read_entry(cloud.team.id, ArtifactHash("abc")).pending
    assert pending is not None
    assert (pending.upload.object_key, pending.writer) == (key, cloud.writer)


def test_a_second_offer_takes_the_place_of_the_first(send: Sender) -> None:
    first, second = offer(send, "abc"), offer(send, "abc")
    put_object(first, b"first")
    assert send("GET", "/v8/artifacts/abc").status == 404
    put_object(second, b"second")
    assert send("GET", "/v8/artifacts/abc").body == b"second"


@pytest.mark.parametrize("announced", ["GET", "POST", "HEAD", "DELETE", ""])
def test_any_other_announcement_is_told_to_come_itself_with_its_token(
    send: Sender, announced: str
) -> None:
    headers = {**PREFLIGHT, "access-control-request-method": announced}
    reply = send("OPTIONS", "/v8/artifacts/abc", headers=headers)
    assert (reply.status, reply.headers[ALLOWED]) == (204, "Authorization")
    assert "location" not in reply.headers


@pytest.mark.parametrize("path", ["/v8/artifacts", "/v8/artifacts/events", "/v8/artifacts/status"])
def test_the_other_paths_need_no_token_to_be_announced(cloud: Cloud, path: str) -> None:
    reply = Sender(None)("OPTIONS", path, headers={"access-control-request-method": "POST"})
    assert (reply.status, reply.headers[ALLOWED]) == (204, "Authorization")


@pytest.mark.parametrize(
    ("user_agent", "direct"),
    [
        ("turbo 2.11.11 1.98.0-nightly linux x86_64", True),
        ("turbo 2.10.13 1.98.0-nightly linux x86_64", True),
        ("turbo 2.10.12 1.98.0-nightly linux x86_64", False),
        ("turbo 2.0.14 unknown linux x86_64", False),
        ("turbo 1.13.4 unknown linux x86_64", False),
        ("turbo 10.0.0 linux x86_64", True),
        ("curl/8.5.0", True),
        ("", True),
    ],
)
def test_clients_that_break_presigned_urls_take_the_way_through_the_function(
    send: Sender, user_agent: str, direct: bool
) -> None:
    reply = send("OPTIONS", "/v8/artifacts/abc", headers={**PREFLIGHT, "user-agent": user_agent})
    assert ("location" in reply.headers) is direct
    assert (ALLOWED in reply.headers) is not direct


def test_a_refusal_tells_the_client_to_send_its_token_so_that_it_learns_the_reason(
    cloud: Cloud,
) -> None:
    change_state(cloud.team.id, caching=CachingStatus.PAUSED)
    reply = cloud.send("OPTIONS", "/v8/artifacts/abc", headers=PREFLIGHT)
    assert (reply.status, reply.code) == (403, "remote_caching_paused")
    assert reply.headers[ALLOWED] == "Authorization"


def test_403_over_limit_before_a_byte_is_sent(cloud: Cloud) -> None:
    change_state(cloud.team.id, quota_bytes=4)
    cloud.send("PUT", "/v8/artifacts/a1", body=b"full")
    reply = cloud.send("OPTIONS", "/v8/artifacts/a2", headers=PREFLIGHT)
    assert (reply.status, reply.code) == (403, "remote_caching_over_limit")


def test_400_for_a_hash_that_is_none(send: Sender) -> None:
    assert send("OPTIONS", "/v8/artifacts/a.b", headers=PREFLIGHT).status == 400
