"""What the addresses that functions sign allow: as much as the function that signed them, from whoever has them."""

from tests.conftest import SetOption
from tests.direct_uploads import PREFLIGHT, object_keys
from tests.rehearsal.acting import follow
from tests.requests import Cloud


def test_an_offered_address_takes_the_upload(cloud: Cloud) -> None:
    reply = cloud.send("OPTIONS", "/v8/artifacts/abc", headers=PREFLIGHT)
    assert follow(reply.headers["location"], "PUT", b"straight to S3") == 200
    assert cloud.send("GET", "/v8/artifacts/abc").body == b"straight to S3"


def test_a_redirect_leads_to_the_bytes(cloud: Cloud, option: SetOption) -> None:
    option("inline_download_bytes", 0)
    cloud.send("PUT", "/v8/artifacts/abc", body=b"artifact")
    reply = cloud.send("GET", "/v8/artifacts/abc")
    assert (reply.status, follow(reply.headers["location"], "GET")) == (302, 200)


def test_the_address_of_one_upload_takes_no_other(cloud: Cloud) -> None:
    reply = cloud.send("OPTIONS", "/v8/artifacts/abc", headers=PREFLIGHT)
    other = reply.headers["location"].replace("/abc/", "/def/")
    assert follow(other, "PUT", b"elsewhere") == 403
    assert object_keys() == []
