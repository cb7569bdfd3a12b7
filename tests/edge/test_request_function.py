"""deploy/edge/request.js: only signed requests pass, and only what describes an artifact reaches the bucket."""

import json
from ipaddress import IPv4Address, IPv6Address, ip_network
from time import time
from urllib.parse import parse_qsl, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larder.artifacts.edge import Kind, signed_address
from larder.signing import EdgeKey
from tests.conftest import SetOption
from tests.edge.requests import KEY, PATH, SENT, TAG, EdgeRequests, refusal, signed, values

NO_ADDRESS = (404, "no_such_address")
SIZE = {"content-length": "5"}


@pytest.fixture(autouse=True)
def _url(option: SetOption) -> None:
    option("edge_url", "https://edge.example.com")


@pytest.fixture(scope="module")
def send() -> EdgeRequests:
    return EdgeRequests()


def test_an_upload_keeps_only_what_describes_the_artifact(send: EdgeRequests) -> None:
    sent = {
        **SIZE,
        "x-artifact-tag": TAG,
        "x-artifact-duration": "1831.75",
        "x-artifact-sha": "a" * 40,
        "x-artifact-dirty-hash": "0",
        "x-artifact-client-ci": "GITHUB_ACTIONS",
        "x-artifact-client-interactive": "0",
        "content-type": "text/html",
        "cache-control": "max-age=9",
        "authorization": "Bearer x",
        "x-amz-acl": "public-read",
        "x-amz-copy-source": "/bucket/key",
        "x-amz-storage-class": "DEEP_ARCHIVE",
        "x-amz-tagging": "a=b",
        "x-amz-meta-writer": "forged",
        "x-amz-meta-tag": "forged",
        "x-artifact-other": "1",
    }
    result = send("PUT", signed("PUT", most_bytes=100), sent)
    assert values(result) == {
        **SENT,
        **SIZE,
        "content-type": "application/octet-stream",
        "if-none-match": "*",
        "x-amz-meta-tag": TAG,
        "x-amz-meta-duration-ms": "1831",
        "x-amz-meta-sha": "a" * 40,
        "x-amz-meta-dirty-hash": "0",
        "x-amz-meta-ci": "GITHUB_ACTIONS",
        "x-amz-meta-interactive": "0",
    }
    assert (result["uri"], result["querystring"], result["cookies"]) == (PATH, {}, {})


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_download_asks_for_its_version_and_a_range_only(send: EdgeRequests, method: str) -> None:
    sent = {"range": "bytes=0-99", "if-match": "x", "x-amz-expected-bucket-owner": "1", "accept": "*"}
    result = send(method, signed("GET", version="v1.A_b-c"), sent)
    assert values(result) == {**SENT, "range": "bytes=0-99"}
    assert result["querystring"] == {"versionId": {"value": "v1.A_b-c"}}


@pytest.mark.parametrize("value", ["items=1", "bytes=0-1,5-6", "bytes=a-b"])
def test_a_malformed_range_is_left_out(send: EdgeRequests, value: str) -> None:
    assert "range" not in values(send("GET", signed("GET"), {"range": value}))


def test_parameters_that_a_client_appends_are_ignored(send: EdgeRequests) -> None:
    url = signed("PUT", most_bytes=100) + "&teamId=team_x&slug=acme"
    assert send("PUT", url, SIZE)["querystring"] == {}


@pytest.mark.parametrize(
    ("flags", "sent"),
    [
        (" once", {"if-none-match": "*"}),
        (" unsigned", {"x-amz-content-sha256": "UNSIGNED-PAYLOAD"}),
        (" once unsigned", {"if-none-match": "*", "x-amz-content-sha256": "UNSIGNED-PAYLOAD"}),
        ("", {}),
        (" twice", {}),
    ],
)
def test_the_flags_of_the_key_say_how_an_upload_is_sent(flags: str, sent: dict[str, str]) -> None:
    send = EdgeRequests({f"key-{KEY.id}": KEY.key + flags})
    reached = values(send("PUT", signed("PUT", most_bytes=100), SIZE))
    assert {name: reached[name] for name in sent} == sent
    assert reached.keys() - sent.keys() == {*SENT, *SIZE, "content-type"}


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        ("PUT", "GET"),
        ("GET", "PUT"),
        ("HEAD", "PUT"),
        ("DELETE", "GET"),
        ("DELETE", "PUT"),
        ("POST", "PUT"),
        ("PATCH", "PUT"),
        ("OPTIONS", "GET"),
    ],
)
def test_an_address_is_for_one_kind_of_request(send: EdgeRequests, method: str, kind: Kind) -> None:
    url = signed(kind, most_bytes=100 if kind == "PUT" else None)
    assert refusal(send(method, url, SIZE if method != "GET" else {})) == NO_ADDRESS


def test_another_path_is_refused(send: EdgeRequests) -> None:
    for path in (f"{PATH}x", PATH.upper(), f"/{PATH}", "/", PATH.replace("/", "/./", 1)):
        assert refusal(send("GET", signed("GET").replace(PATH, path))) == NO_ADDRESS


@pytest.mark.parametrize("name", ["k", "e", "m", "v", "s"])
@pytest.mark.parametrize("change", ["other", "absent", "empty", "twice", "first"])
def test_a_changed_parameter_is_refused(send: EdgeRequests, name: str, change: str) -> None:
    url, _, query = signed("PUT", most_bytes=100, version="1").partition("?")
    pairs = dict(parse_qsl(query))
    value = pairs[name]
    other = value[:-1] + ("1" if value[-1] != "1" else "2")
    if change in ("other", "empty"):
        pairs[name] = other if change == "other" else ""
    elif change == "absent":
        del pairs[name]
    query = urlencode(pairs)
    if change == "twice":
        query += f"&{name}={value}"
    elif change == "first":
        query = f"{name}={other}&{query}"
    assert refusal(send("PUT", f"{url}?{query}", SIZE)) == NO_ADDRESS


def test_a_key_that_the_store_does_not_have_is_refused(send: EdgeRequests) -> None:
    for id in ("b", "", "A", "a b", "constructor"):
        assert refusal(send("GET", signed("GET", key=EdgeKey(id, KEY.key)))) == NO_ADDRESS
    emptied = EdgeRequests({f"key-{KEY.id}": ""})
    assert refusal(emptied("GET", signed("GET", key=EdgeKey(KEY.id, "")))) == NO_ADDRESS


def test_a_request_without_parameters_is_refused(send: EdgeRequests) -> None:
    assert refusal(send("GET", PATH)) == NO_ADDRESS


def test_an_address_expires_with_its_second(send: EdgeRequests) -> None:
    assert values(send("GET", signed("GET", lasts_s=5)))
    assert refusal(send("GET", signed("GET", lasts_s=-2))) == (404, "address_expired")
    never = signed_address(KEY, "GET", PATH, expires_at=10**10)
    assert refusal(send("GET", never)) == NO_ADDRESS


@pytest.mark.parametrize(
    ("sent", "refused"),
    [
        ({}, (411, "length_required")),
        ({"transfer-encoding": "chunked"}, (411, "length_required")),
        ({"transfer-encoding": "chunked", "content-length": "5"}, (411, "length_required")),
        ({"content-length": "five"}, (411, "length_required")),
        ({"content-length": "-1"}, (411, "length_required")),
        ({"content-length": "0"}, (413, "too_large")),
        ({"content-length": "101"}, (413, "too_large")),
        ({"content-length": "9999999999"}, (413, "too_large")),
    ],
)
def test_the_size_of_an_upload_is_bound(send: EdgeRequests, sent: dict[str, str], refused: tuple[int, str]) -> None:
    assert refusal(send("PUT", signed("PUT", most_bytes=100), sent)) == refused


def test_the_largest_upload_fits_and_none_fits_into_no_room(send: EdgeRequests) -> None:
    assert values(send("PUT", signed("PUT", most_bytes=100), {"content-length": "100"}))
    for most in (0, None):
        url = signed("PUT", most_bytes=most)
        assert refusal(send("PUT", url, {"content-length": "1"})) == (413, "too_large")


@pytest.mark.parametrize("tag", ["a" * 601, "\u00e9"])
def test_a_tag_that_cannot_be_stored_is_refused(send: EdgeRequests, tag: str) -> None:
    result = send("PUT", signed("PUT", most_bytes=100), {**SIZE, "x-artifact-tag": tag})
    assert refusal(result) == (400, "invalid_request")
    assert json.loads(result["body"]["data"])["error"]["message"].startswith("x-artifact-tag")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x-artifact-duration", "-1"),
        ("x-artifact-duration", "1e9"),
        ("x-artifact-duration", "12345678901"),
        ("x-artifact-sha", "a" * 129),
        ("x-artifact-dirty-hash", "a-b"),
        ("x-artifact-client-ci", "x" * 51),
        ("x-artifact-client-ci", "\u00e9"),
        ("x-artifact-client-interactive", "2"),
    ],
)
def test_a_header_that_only_describes_is_left_out(send: EdgeRequests, name: str, value: str) -> None:
    kept = values(send("PUT", signed("PUT", most_bytes=100), {**SIZE, name: value}))
    assert not any("meta" in name for name in kept)


def test_an_empty_header_counts_as_absent(send: EdgeRequests) -> None:
    sent = {**SIZE, "x-artifact-client-ci": "", "x-artifact-tag": ""}
    assert not any("meta" in name for name in values(send("PUT", signed("PUT", most_bytes=9), sent)))


def test_a_header_that_comes_twice_is_refused(send: EdgeRequests) -> None:
    from local.edge.events import request_event

    path, _, query = signed("PUT", most_bytes=9).removeprefix("https://edge.example.com").partition("?")
    headers = [*SENT.items(), *SIZE.items(), ("x-artifact-tag", TAG), ("x-artifact-tag", "QUJD")]
    result = send.of(request_event("PUT", path, query, headers))
    assert refusal(result) == (400, "invalid_request")


NAMES = st.sampled_from(
    [
        *("x-amz-acl", "x-amz-meta-writer", "x-amz-copy-source", "x-amz-meta-sha256", "cookie"),
        *("authorization", "expires", "content-encoding", "range", "if-none-match", "constructor"),
        *("x-artifact-tag", "x-artifact-sha", "x-artifact-duration", "x-artifact-client-ci"),
    ]
) | st.from_regex(r"[a-z][a-z0-9-]{0,20}", fullmatch=True)
TEXTS = st.text(st.characters(codec="latin-1", exclude_characters="\r\n\0"), max_size=40)
ALLOWED_OF_PUT = {
    *("host", "user-agent", "content-length", "via", "content-type", "if-none-match"),
    *(f"x-amz-meta-{name}" for name in ("tag", "duration-ms", "sha", "dirty-hash", "ci", "interactive")),
}


@given(headers=st.dictionaries(NAMES, TEXTS, max_size=8))
def test_no_header_outside_the_table_leaves(send: EdgeRequests, headers: dict[str, str]) -> None:
    headers = {**headers, **SIZE}
    result = send("PUT", _fixed("PUT"), headers)
    if "statusCode" in result:
        assert refusal(result)[0] in (400, 411)
    else:
        assert values(result).keys() <= ALLOWED_OF_PUT
        assert result["headers"]["content-type"] == {"value": "application/octet-stream"}
    got = send("GET", _fixed("GET"), headers)
    assert values(got).keys() <= {"host", "user-agent", "content-length", "transfer-encoding", "via", "range"}


def _fixed(kind: Kind) -> str:
    expires_at = int(time()) + 600
    most = 100 if kind == "PUT" else None
    return signed_address(KEY, kind, PATH, expires_at=expires_at, most_bytes=most)


PARAMETERS = st.dictionaries(
    st.sampled_from(["k", "e", "m", "v", "s", "versionId", "X-Amz-Signature", "__proto__"]),
    st.sampled_from([KEY.id, "4102444800", "100", "A" * 43, ""])
    | st.text(st.characters(codec="ascii", exclude_characters="&=#+%\r\n\0 "), max_size=50),
)


@given(
    method=st.sampled_from(["GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "PATCH"]),
    path=st.just(PATH) | st.from_regex(r"/[!-~]{0,60}", fullmatch=True),
    parameters=PARAMETERS,
)
def test_nothing_that_is_not_signed_passes(
    send: EdgeRequests, method: str, path: str, parameters: dict[str, str]
) -> None:
    query = "&".join(f"{name}={value}" for name, value in parameters.items())
    path = path.replace("?", "").replace("#", "")
    assert refusal(send(method, f"{path}?{query}", SIZE)) == NO_ADDRESS


@given(position=st.integers(min_value=0, max_value=400), character=st.sampled_from("0123456789abcdefXYZ-_./"))
def test_a_signed_address_with_another_character_is_refused(send: EdgeRequests, position: int, character: str) -> None:
    url = _fixed("PUT").removeprefix("https://edge.example.com")
    position %= len(url)
    if url[position] in (character, "?", "&", "="):
        return
    changed = url[:position] + character + url[position + 1 :]
    result = send("PUT", changed, SIZE)
    # The last letter of a signature has two bits that mean nothing, but the text has to be the same.
    assert refusal(result) == NO_ADDRESS


# The networks ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("viewer", "passes"),
    [
        ("203.0.113.5", True),
        ("203.0.114.5", False),
        ("198.51.100.9", True),
        ("198.51.100.10", False),
        ("10.255.0.1", True),
        ("11.0.0.1", False),
        ("2001:db8:1:2:3:4:5:6", True),
        ("2001:DB8:1::", True),
        ("2001:db8:3::1", False),
        ("2001:db8:2::5", True),
        ("2001:db8:2:0:0:0:0:5", True),
        ("2001:db8:2::6", False),
        ("::1", True),
        ("::", False),
        ("::ffff:203.0.113.5", False),
        ("cb00:7105::", False),
        ("unknown", False),
        ("", False),
    ],
)
def test_only_viewers_in_the_networks_pass_with_a_signed_address(viewer: str, passes: bool) -> None:
    networks = "203.0.113.0/24,198.51.100.8/31,10.0.0.0/8,2001:db8:0::/47,2001:db8:2::5/128,::1/128"
    result = EdgeRequests(networks=networks)("GET", signed("GET", version="v1"), viewer=viewer)
    if passes:
        assert "statusCode" not in result
    else:
        assert refusal(result) == (403, "network_not_allowed")


@given(st.ip_addresses(), st.ip_addresses(), st.integers(0, 128), st.booleans())
def test_the_edge_decides_as_python_does(
    viewer: IPv4Address | IPv6Address, other: IPv4Address | IPv6Address, bits: int, is_near: bool
) -> None:
    first = viewer if is_near else other
    network = ip_network((first, min(bits, first.max_prefixlen)), strict=False)
    result = EdgeRequests(networks=str(network))("GET", signed("GET", version="v1"), viewer=str(viewer))
    assert ("statusCode" not in result) == (viewer in network)
