"""OPTIONS on the paths of the cache"""

from urllib.parse import parse_qs, urlsplit

import pytest

from larder.artifacts.models import ArtifactHash
from larder.artifacts.repository.index import read_entry
from larder.settings import settings
from larder.teams.models import CachingStatus
from larder.teams.state import change_state
from tests.conftest import SetOption
from tests.direct_uploads import PREFLIGHT, offer, put_object
from tests.requests import Cloud, Sender

ALLOWED = "access-control-allow-headers"


def test_a_put_is_redirected_to_s3(cloud: Cloud) -> None:
    reply = cloud.send("OPTIONS", "/v8/artifacts/abc", headers=PREFLIGHT)
    location = urlsplit(reply.headers["location"])
    assert reply.status == 204
    assert location.netloc == f"{settings().artifacts_bucket}.s3.eu-central-1.amazonaws.com"
    assert location.path.startswith(f"/artifacts/{cloud.team.id}/abc/")
    signature = parse_qs(location.query)
    assert signature["X-Amz-SignedHeaders"] == ["host"]
    assert signature["X-Amz-Expires"] == ["600"]


def test_in_china_it_is_redirected_to_the_domain_of_aws_there(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "cn-north-1")
    monkeypatch.setenv("URL_SUFFIX", "amazonaws.com.cn")
    reply = cloud.send("OPTIONS", "/v8/artifacts/abc", headers=PREFLIGHT)
    location = urlsplit(reply.headers["location"])
    assert location.netloc == f"{settings().artifacts_bucket}.s3.cn-north-1.amazonaws.com.cn"
    (credential,) = parse_qs(location.query)["X-Amz-Credential"]
    assert credential.endswith("/cn-north-1/s3/aws4_request")


def test_with_ipv6_it_is_redirected_to_the_dual_stack_address_of_s3(cloud: Cloud, option: SetOption) -> None:
    option("dual_stack", "true")
    location = urlsplit(cloud.send("OPTIONS", "/v8/artifacts/abc", headers=PREFLIGHT).headers["location"])
    host = "s3.dualstack.eu-central-1.amazonaws.com"
    assert location.netloc == f"{settings().artifacts_bucket}.{host}"


def test_a_redirected_put_sends_no_token_because_s3_would_refuse_it(send: Sender) -> None:
    assert ALLOWED not in send("OPTIONS", "/v8/artifacts/abc", headers=PREFLIGHT).headers


def test_the_offer_records_the_key_of_the_uploader(cloud: Cloud) -> None:
    key = offer(cloud.send, "abc")
    pending = read_entry(cloud.team.id, ArtifactHash("abc")).pending
    assert pending is not None
    assert (pending.upload.object_key, pending.writer) == (key, cloud.writer)


def test_a_second_offer_replaces_the_first(send: Sender) -> None:
    first, second = offer(send, "abc"), offer(send, "abc")
    put_object(first, b"first")
    assert send("GET", "/v8/artifacts/abc").status == 404
    put_object(second, b"second")
    assert send("GET", "/v8/artifacts/abc").body == b"second"


@pytest.mark.parametrize("announced", ["GET", "POST", "HEAD", "DELETE", ""])
def test_other_methods_are_not_redirected_and_need_the_token(send: Sender, announced: str) -> None:
    headers = {**PREFLIGHT, "access-control-request-method": announced}
    reply = send("OPTIONS", "/v8/artifacts/abc", headers=headers)
    assert (reply.status, reply.headers[ALLOWED]) == (204, "Authorization")
    assert "location" not in reply.headers


@pytest.mark.parametrize("path", ["/v8/artifacts", "/v8/artifacts/events", "/v8/artifacts/status"])
def test_preflights_of_other_paths_need_no_token(cloud: Cloud, path: str) -> None:
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
def test_clients_that_break_presigned_urls_upload_through_the_function(
    send: Sender, user_agent: str, direct: bool
) -> None:
    reply = send("OPTIONS", "/v8/artifacts/abc", headers={**PREFLIGHT, "user-agent": user_agent})
    assert ("location" in reply.headers) is direct
    assert (ALLOWED in reply.headers) is not direct


def test_a_refused_preflight_allows_the_token_so_that_the_put_gets_the_reason(cloud: Cloud) -> None:
    change_state(cloud.team.id, caching=CachingStatus.PAUSED)
    reply = cloud.send("OPTIONS", "/v8/artifacts/abc", headers=PREFLIGHT)
    assert (reply.status, reply.code) == (403, "remote_caching_paused")
    assert reply.headers[ALLOWED] == "Authorization"
