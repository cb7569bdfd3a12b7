"""The bucket: signatures are checked, objects are complete, and functions get their events."""

import base64
import hashlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit

import httpx
import pytest
from botocore.exceptions import ClientError
from nanio.storage.backend import ObjectInfo
from nanio.storage.filesystem import FilesystemStorage
from nanio.storage.metadata import write_metadata
from nanio.storage.paths import metadata_path

from local.object_storage.storage import Storage
from tests.local.stub_service import BUCKET, StubCloud, eventually


@pytest.fixture(scope="module")
def s3(cloud: StubCloud) -> Any:
    return cloud.s3()


@pytest.fixture
def http() -> Iterator[httpx.Client]:
    with httpx.Client(trust_env=False, timeout=60) as client:
        yield client


def presign(s3: Any, operation: str, key: str, seconds: int = 60, **parameters: str) -> str:
    return str(
        s3.generate_presigned_url(operation, Params={"Bucket": BUCKET, "Key": key, **parameters}, ExpiresIn=seconds)
    )


def with_query(url: str, **changes: str) -> str:
    parts = urlsplit(url)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    return urlunsplit(parts._replace(query=urlencode({**query, **changes})))


def test_a_presigned_upload_and_download_carry_the_bytes(s3: Any, http: httpx.Client) -> None:
    body = os.urandom(3_000_000)
    assert http.put(presign(s3, "put_object", "a/up"), content=body).status_code == 200
    assert http.get(presign(s3, "get_object", "a/up")).content == body


def test_a_presigned_url_is_for_one_method_key_and_signature(s3: Any, http: httpx.Client) -> None:
    s3.put_object(Bucket=BUCKET, Key="a/guarded", Body=b"1")
    download = presign(s3, "get_object", "a/guarded")
    signature = parse_qs(urlsplit(download).query)["X-Amz-Signature"][0]
    other = ("0" if signature[0] != "0" else "1") + signature[1:]
    assert http.get(download).status_code == 200
    assert http.get(with_query(download, **{"X-Amz-Signature": other})).status_code == 403
    assert http.get(with_query(download, **{"X-Amz-Expires": "6000"})).status_code == 403
    assert http.get(download.replace("a/guarded", "a/up")).status_code == 403
    assert http.put(download, content=b"2").status_code == 403
    assert http.head(download).status_code == 403
    assert http.delete(download).status_code == 403
    assert s3.get_object(Bucket=BUCKET, Key="a/guarded")["Body"].read() == b"1"


def test_a_presigned_url_expires(s3: Any, http: httpx.Client) -> None:
    s3.put_object(Bucket=BUCKET, Key="a/short", Body=b"1")
    url = presign(s3, "get_object", "a/short", seconds=1)
    assert eventually(lambda: http.get(url).status_code == 403)


def test_unsigned_and_foreign_requests_are_rejected(cloud: StubCloud, http: httpx.Client) -> None:
    endpoint = cloud.description["environment"]["AWS_ENDPOINT_URL_S3"]
    assert http.get(f"{endpoint}/{BUCKET}").status_code in (401, 403)
    assert http.put(f"{endpoint}/{BUCKET}/a/x", content=b"1").status_code in (401, 403)


def test_rejects_a_body_that_does_not_match_its_digest(s3: Any) -> None:
    digest = base64.b64encode(hashlib.md5(b"abc", usedforsecurity=False).digest()).decode()
    s3.put_object(Bucket=BUCKET, Key="a/announced", Body=b"abc", ContentMD5=digest)
    with pytest.raises(ClientError, match="BadDigest"):
        s3.put_object(Bucket=BUCKET, Key="a/announced", Body=b"xyz", ContentMD5=digest)
    assert s3.get_object(Bucket=BUCKET, Key="a/announced")["Body"].read() == b"abc"


def test_the_etag_depends_on_the_content(s3: Any) -> None:
    first = s3.put_object(Bucket=BUCKET, Key="a/tagged", Body=b"1")["ETag"]
    assert s3.head_object(Bucket=BUCKET, Key="a/tagged")["ETag"] == first
    second = s3.put_object(Bucket=BUCKET, Key="a/tagged", Body=b"2")["ETag"]
    assert s3.head_object(Bucket=BUCKET, Key="a/tagged")["ETag"] == second != first


def test_a_version_stays_when_its_key_is_overwritten_or_deleted(s3: Any, http: httpx.Client) -> None:
    key = "versions/one"
    first = s3.put_object(Bucket=BUCKET, Key=key, Body=b"first")["VersionId"]
    url = presign(s3, "get_object", key, VersionId=first)
    second = s3.put_object(Bucket=BUCKET, Key=key, Body=b"another")["VersionId"]
    assert s3.get_object(Bucket=BUCKET, Key=key)["VersionId"] == second != first
    assert http.get(url).content == b"first"
    marker = s3.delete_object(Bucket=BUCKET, Key=key)["VersionId"]
    with pytest.raises(ClientError, match="404"):
        s3.head_object(Bucket=BUCKET, Key=key)
    assert s3.list_objects_v2(Bucket=BUCKET, Prefix=key)["KeyCount"] == 0
    head = s3.head_object(Bucket=BUCKET, Key=key, VersionId=first)
    assert (head["ContentLength"], head["VersionId"]) == (5, first)
    assert http.get(url).headers["x-amz-version-id"] == first
    assert versions_of(s3, key) == [marker, second, first]
    s3.delete_object(Bucket=BUCKET, Key=key, VersionId=marker)
    assert s3.get_object(Bucket=BUCKET, Key=key)["Body"].read() == b"another"


def test_deletes_one_version(s3: Any) -> None:
    key = "versions/deleted"
    first, second = (s3.put_object(Bucket=BUCKET, Key=key, Body=body)["VersionId"] for body in (b"1", b"2"))
    s3.delete_object(Bucket=BUCKET, Key=key, VersionId=second)
    assert s3.get_object(Bucket=BUCKET, Key=key)["Body"].read() == b"1"
    s3.delete_object(Bucket=BUCKET, Key=key, VersionId=first)
    assert versions_of(s3, key) == []
    with pytest.raises(ClientError, match="NoSuchVersion"):
        s3.get_object(Bucket=BUCKET, Key=key, VersionId=first)
    s3.delete_object(Bucket=BUCKET, Key=key, VersionId=first)


def test_lists_all_versions_page_by_page_the_newest_of_a_key_first(s3: Any) -> None:
    stored = [
        (key, s3.put_object(Bucket=BUCKET, Key=key, Body=b"1")["VersionId"])
        for key in ("pages/a", "pages/b", "pages/c")
        for _ in range(3)
    ]
    pages = s3.get_paginator("list_object_versions").paginate(
        Bucket=BUCKET, Prefix="pages/", PaginationConfig={"PageSize": 2}
    )
    listed = [
        (one["Key"], one["VersionId"], one["IsLatest"], one["Size"]) for page in pages for one in page["Versions"]
    ]
    newest_first = sorted(stored, key=lambda one: (one[0], -stored.index(one)))
    assert listed == [(key, version, number % 3 == 0, 1) for number, (key, version) in enumerate(newest_first)]


def test_an_object_from_before_versions_is_the_version_null(tmp_path: Path) -> None:
    before = FilesystemStorage(tmp_path)
    before.create_bucket(BUCKET)
    info = ObjectInfo(key="a/b", size=3, etag='"1"', last_modified=datetime.now(tz=UTC))
    (tmp_path / BUCKET / "a").mkdir()
    (tmp_path / BUCKET / "a" / "b").write_bytes(b"old")
    write_metadata(metadata_path(tmp_path, BUCKET, "a/b"), info)
    for _ in range(2):
        storage = Storage(tmp_path, chunk_size=1000)
        version = storage.find(BUCKET, "a/b", "null")
        assert version == storage.find(BUCKET, "a/b", None)
        assert storage.head_object(BUCKET, version.stored_name).etag == '"1"'
        assert [entry.key for entry in storage.list_objects(BUCKET).contents] == ["a/b"]


@pytest.mark.parametrize(
    "refused",
    [
        {"operation": "copy_object", "Key": "a/x", "CopySource": f"{BUCKET}/a/up"},
        {"operation": "delete_objects", "Delete": {"Objects": [{"Key": "a/up"}]}},
    ],
    ids=lambda refused: refused["operation"],
)
def test_refuses_what_it_cannot_do_with_versions(s3: Any, refused: dict[str, Any]) -> None:
    call = getattr(s3, refused["operation"])
    with pytest.raises(ClientError, match="NotImplemented"):
        call(Bucket=BUCKET, **{name: refused[name] for name in refused if name != "operation"})


def test_a_signed_download_sets_headers_of_its_reply(s3: Any, http: httpx.Client) -> None:
    s3.put_object(
        Bucket=BUCKET,
        Key="a/page",
        Body=b"<script>",
        ContentType="text/html",
        ContentDisposition="inline",
        CacheControl="public",
    )
    url = presign(
        s3,
        "get_object",
        "a/page",
        ResponseContentType="application/octet-stream",
        ResponseContentDisposition="attachment",
        ResponseCacheControl="no-store",
    )
    reply = http.get(url)
    assert reply.headers["content-type"] == "application/octet-stream"
    assert reply.headers["content-disposition"] == "attachment"
    assert reply.headers["cache-control"] == "no-store"
    assert http.get(with_query(url, **{"response-cache-control": "public"})).status_code == 403


def versions_of(s3: Any, key: str) -> list[str]:
    """The versions and delete markers of a key, newest first."""
    listing = s3.list_object_versions(Bucket=BUCKET, Prefix=key)
    listed = listing.get("DeleteMarkers", []) + listing.get("Versions", [])
    return [one["VersionId"] for one in listed]


def test_reads_any_part_of_a_large_object(s3: Any) -> None:
    body = os.urandom(1_300_000)
    s3.put_object(Bucket=BUCKET, Key="a/parts", Body=body)
    for first, last in ((0, 0), (1, 524_288), (524_287, 1_048_577), (1_299_999, 1_299_999)):
        reply = s3.get_object(Bucket=BUCKET, Key="a/parts", Range=f"bytes={first}-{last}")
        assert reply["Body"].read() == body[first : last + 1]


def test_keeps_metadata(s3: Any) -> None:
    s3.put_object(Bucket=BUCKET, Key="a/described", Body=b"123", Metadata={"tag": "t+/="})
    head = s3.head_object(Bucket=BUCKET, Key="a/described")
    assert (head["Metadata"], head["ContentLength"]) == ({"tag": "t+/="}, 3)


def test_sends_the_function_an_event_for_every_object_under_its_prefix(cloud: StubCloud, s3: Any) -> None:
    s3.put_object(Bucket=BUCKET, Key="elsewhere/one", Body=b"1")
    stored = s3.put_object(Bucket=BUCKET, Key="artifacts/o/h/one", Body=b"12345")

    def heard() -> list[dict[str, Any]]:
        return [event for event in cloud.arrived() if event["detail"]["object"]["key"] == "artifacts/o/h/one"]

    assert eventually(heard)
    (event,) = heard()
    assert (event["source"], event["detail-type"]) == ("aws.s3", "Object Created")
    assert event["detail"]["bucket"] == {"name": BUCKET}
    assert event["detail"]["object"]["size"] == 5
    assert event["detail"]["object"]["version-id"] == stored["VersionId"]
    keys = {event["detail"]["object"]["key"] for event in cloud.arrived()}
    assert not any(key.startswith("elsewhere/") for key in keys)


def test_sends_one_event_for_a_complete_multipart_upload(cloud: StubCloud, s3: Any) -> None:
    key = "artifacts/o/h/parts"
    upload = s3.create_multipart_upload(Bucket=BUCKET, Key=key)["UploadId"]
    part = s3.upload_part(Bucket=BUCKET, Key=key, UploadId=upload, PartNumber=1, Body=b"abc")
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    s3.complete_multipart_upload(Bucket=BUCKET, Key=key, UploadId=upload, MultipartUpload=parts)

    assert eventually(lambda: reasons(cloud, key))
    assert reasons(cloud, key) == ["CompleteMultipartUpload"]


def test_copies_a_version_to_a_new_one_with_new_metadata(cloud: StubCloud, s3: Any) -> None:
    key = "artifacts/o/h/copied"
    first = s3.put_object(Bucket=BUCKET, Key=key, Body=b"1", Metadata={"old": "1"})["VersionId"]
    s3.put_object(Bucket=BUCKET, Key=key, Body=b"another")
    s3.copy_object(
        Bucket=BUCKET,
        Key=key,
        MetadataDirective="REPLACE",
        Metadata={"new": "2"},
        CopySource={"Bucket": BUCKET, "Key": key, "VersionId": first},
    )
    copy = s3.get_object(Bucket=BUCKET, Key=key)
    assert (copy["Body"].read(), copy["Metadata"]) == (b"1", {"new": "2"})
    assert len(versions_of(s3, key)) == 3
    assert eventually(lambda: len(reasons(cloud, key)) == 3)
    assert sorted(reasons(cloud, key)) == ["CopyObject", "PutObject", "PutObject"]


def test_an_upload_url_does_not_copy_another_object(s3: Any, http: httpx.Client) -> None:
    s3.put_object(Bucket=BUCKET, Key="a/secret", Body=b"1")
    headers = {"x-amz-copy-source": f"{BUCKET}/a/secret", "x-amz-metadata-directive": "REPLACE"}
    reply = http.put(presign(s3, "put_object", "a/taken"), headers=headers)
    assert reply.status_code == 403
    assert versions_of(s3, "a/taken") == []


def reasons(cloud: StubCloud, key: str) -> list[str]:
    """The operations by which the object with this key was stored, as its events name them."""
    return [event["detail"]["reason"] for event in cloud.arrived() if event["detail"]["object"]["key"] == key]


def test_delivers_an_event_again_when_the_function_fails(cloud: StubCloud, s3: Any) -> None:
    key = "artifacts/o/h/fails-once"
    s3.put_object(Bucket=BUCKET, Key=key, Body=b"1")

    def times() -> int:
        return [event["detail"]["object"]["key"] for event in cloud.arrived()].count(key)

    assert eventually(lambda: times() == 2)
    assert eventually(lambda: not list((cloud.data / "events").glob("*.json")))


def test_an_interrupted_upload_leaves_nothing(cloud: StubCloud, s3: Any) -> None:
    url = presign(s3, "put_object", "broken/off")

    def pieces() -> Iterator[bytes]:
        yield bytes(1_000_000)
        raise ConnectionAbortedError

    with pytest.raises(ConnectionAbortedError):
        httpx.put(url, content=pieces(), headers={"content-length": "5000000"}, trust_env=False)
    assert s3.list_objects_v2(Bucket=BUCKET, Prefix="broken/")["KeyCount"] == 0
    unfinished = cloud.data / "s3" / ".nanio" / "unfinished"
    assert eventually(lambda: not list(unfinished.iterdir()))


def test_writers_and_deleters_of_neighbouring_keys_do_not_disturb_each_other(cloud: StubCloud) -> None:
    errors: list[Exception] = []

    def work(worker: int) -> None:
        s3 = cloud.s3()
        try:
            for number in range(15):
                key = f"shared/h/{worker}-{number}"
                s3.put_object(Bucket=BUCKET, Key=key, Body=key.encode())
                assert s3.get_object(Bucket=BUCKET, Key=key)["Body"].read() == key.encode()
                s3.delete_object(Bucket=BUCKET, Key=key)
        except (ClientError, AssertionError) as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_versions_of_one_key_that_are_stored_at_once_are_all_known(tmp_path: Path) -> None:
    storage = Storage(tmp_path, chunk_size=1_000)
    storage.create_bucket(BUCKET)
    # Threads take turns so often that one would overwrite what another one notes.
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(16) as pool:
            made = list(pool.map(lambda _: storage.add_delete_marker(BUCKET, "key"), range(256)))
    finally:
        sys.setswitchinterval(interval)
    assert storage.versions(BUCKET, "key") == sorted(made, key=lambda marker: marker.stored_name)


def test_a_reader_keeps_the_object_that_it_began_to_read(s3: Any) -> None:
    body = os.urandom(8_000_000)
    s3.put_object(Bucket=BUCKET, Key="read/on", Body=body)
    stream = s3.get_object(Bucket=BUCKET, Key="read/on")["Body"]
    first = stream.read(1000)
    s3.delete_object(Bucket=BUCKET, Key="read/on")
    assert first + stream.read() == body


def test_memory_stays_flat_while_a_large_object_passes(cloud: StubCloud, s3: Any, http: httpx.Client) -> None:
    size, piece = 120_000_000, bytes(1_000_000)
    pid = cloud.child("local.object_storage")
    before = resident_bytes(pid)
    url = presign(s3, "put_object", "large/one")
    pieces = (piece for _ in range(size // len(piece)))
    put = http.put(url, content=pieces, headers={"content-length": str(size)})
    assert put.status_code == 200
    with http.stream("GET", presign(s3, "get_object", "large/one")) as reply:
        received = sum(len(chunk) for chunk in reply.iter_raw())
    assert received == size
    assert resident_bytes(pid) - before < 40_000_000


def resident_bytes(pid: int) -> int:
    output = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=True).stdout
    return int(output) * 1024
