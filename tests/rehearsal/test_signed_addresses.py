"""Signed URLs give anyone who has them what the function that signed them may do, and no more."""

from tests.conftest import SetOption
from tests.direct_uploads import PREFLIGHT, object_keys
from tests.rehearsal.acting import follow
from tests.requests import Cloud


def test_an_upload_url_accepts_the_upload(cloud: Cloud) -> None:
    reply = cloud.send("OPTIONS", "/v8/artifacts/abc", headers=PREFLIGHT)
    assert follow(reply.headers["location"], "PUT", b"straight to S3") == 200
    assert cloud.send("GET", "/v8/artifacts/abc").body == b"straight to S3"


def test_a_redirect_leads_to_the_body(cloud: Cloud, option: SetOption) -> None:
    option("inline_download_bytes", 0)
    cloud.send("PUT", "/v8/artifacts/abc", body=b"artifact")
    reply = cloud.send("GET", "/v8/artifacts/abc")
    assert (reply.status, follow(reply.headers["location"], "GET")) == (302, 200)


def test_an_upload_url_accepts_no_other_upload(cloud: Cloud) -> None:
    reply = cloud.send("OPTIONS", "/v8/artifacts/abc", headers=PREFLIGHT)
    other = reply.headers["location"].replace("/abc/", "/def/")
    assert follow(other, "PUT", b"elsewhere") == 403
    assert object_keys() == []
