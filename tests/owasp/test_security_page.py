"""The tests that docs/security.md names exist, and its statements about presigned URLs are correct."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from larder.api_keys.keys import find_key, revoke_key
from tests.conftest import SetOption
from tests.owasp.conftest import Person

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text()
TESTS = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))


def test_every_risk_has_its_row_and_its_file() -> None:
    rows = re.findall(r"^\| API(\d+) ", PAGE, re.MULTILINE)
    names = {path.name for path in Path(__file__).parent.glob("test_api*.py")}
    files = {name.split("_")[1] for name in names}
    assert set(re.findall(r"`tests/owasp/(test_api\w+\.py)`", PAGE)) == names
    assert rows == [str(number) for number in range(1, 11)]
    assert files == {f"api{number}" for number in range(1, 11)}


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(test_\w+)`", PAGE))))
def test_tests_named_on_the_page_exist(name: str) -> None:
    assert f"def {name}(" in TESTS


@pytest.mark.parametrize(("path", "name"), sorted(set(re.findall(r"`(tests/[\w/.]+)::(\w+)`", PAGE))))
def test_tests_named_with_their_file_exist(path: str, name: str) -> None:
    assert f"def {name}(" in (ROOT / path).read_text()


def test_a_presigned_url_stays_valid_after_its_key_but_not_after_its_expiry(ada: Person, option: SetOption) -> None:
    option("inline_download_bytes", 0)
    option("download_url_seconds", 120)
    reply = ada.by_key("GET", "/v8/artifacts/deadbeefdeadbeef")
    assert reply.status == 302
    query = parse_qs(urlsplit(reply.headers["location"]).query)
    key = find_key(ada.key_id)
    assert key is not None
    assert revoke_key(key)
    assert ada.by_key("GET", "/v8/artifacts/deadbeefdeadbeef").status == 401
    # The URL contains nothing of the API key. S3 checks only the signature and the expiry.
    assert query["X-Amz-Expires"] == ["120"]
    assert ada.key_id not in reply.headers["location"]
    assert ada.key not in reply.headers["location"]
