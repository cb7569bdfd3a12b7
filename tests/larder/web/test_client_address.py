"""The client address that rate limits count by, and headers that must not change it."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larder.web.client_address import UNKNOWN, client_address, counted_address
from tests.conftest import SetOption
from tests.larder.web.endpoints import CLIENT, http_request

pytestmark = pytest.mark.usefixtures("environment")


def counted(client: str = CLIENT, forwarded: str | None = None) -> str:
    headers = {} if forwarded is None else {"x-forwarded-for": forwarded}
    return counted_address(http_request(client=client, headers=headers))


def test_without_proxies_headers_do_not_change_the_address() -> None:
    assert counted(forwarded=None) == CLIENT
    assert counted(forwarded=f"198.51.100.7, {CLIENT}") == CLIENT
    assert counted(forwarded="198.51.100.7") == CLIENT


@pytest.mark.parametrize(
    ("hops", "forwarded", "address"),
    [
        (1, f"203.0.113.5, {CLIENT}", "203.0.113.5"),
        (1, f"198.51.100.7, 203.0.113.5, {CLIENT}", "203.0.113.5"),
        (1, f"198.51.100.7,198.51.100.8,203.0.113.5,{CLIENT}", "203.0.113.5"),
        (2, f"198.51.100.7, 203.0.113.5, 192.0.2.99, {CLIENT}", "203.0.113.5"),
        (1, f"203.0.113.5:4711, {CLIENT}", "203.0.113.5"),
        (1, f"[2001:db8::1]:4711, {CLIENT}", "2001:db8::/64"),
        (1, f"  203.0.113.5\t, {CLIENT}", "203.0.113.5"),
        (1, f"198.51.100.7, forged, {CLIENT}", UNKNOWN),
        (1, f"198.51.100.7, , {CLIENT}", UNKNOWN),
    ],
)
def test_behind_proxies_the_entry_of_the_outermost_proxy_counts(
    hops: int, forwarded: str, address: str, option: SetOption
) -> None:
    option("trusted_proxy_hops", hops)
    assert counted(forwarded=forwarded) == address


@pytest.mark.parametrize("forwarded", [None, CLIENT, "203.0.113.5, 198.51.100.7"])
def test_a_client_that_bypasses_the_proxies_counts_by_its_own_address(forwarded: str | None, option: SetOption) -> None:
    option("trusted_proxy_hops", 1)
    assert counted(forwarded=forwarded) == CLIENT


@pytest.mark.parametrize(
    "spelling",
    [
        "192.0.2.1", "::ffff:192.0.2.1", "::FFFF:192.0.2.1", "::ffff:c000:201", "::ffff:C000:0201",
        "0:0:0:0:0:ffff:c000:0201", "0000:0000:0000:0000:0000:FFFF:192.0.2.1", "::ffff:192.0.2.1%eth0",
    ],
)  # fmt: skip
def test_all_spellings_of_an_ipv4_address_count_as_one(spelling: str) -> None:
    assert counted(spelling) == "192.0.2.1"
    assert client_address(http_request(client=spelling)) == "192.0.2.1"


@pytest.mark.parametrize(
    "spelling", ["2001:db8:1:2::1", "2001:DB8:1:2:ffff:ffff:ffff:ffff", "2001:0db8:0001:0002::9%x"]
)
def test_ipv6_counts_by_its_64_bit_network(spelling: str) -> None:
    assert counted(spelling) == "2001:db8:1:2::/64"


def test_neighbouring_networks_count_separately() -> None:
    assert counted("2001:db8:1:3::1") != counted("2001:db8:1:2::1")


@pytest.mark.parametrize(
    "garbage", ["", "x", "1.2.3", "010.0.0.1", "1.2.3.4.5", "::g", "\u0661.\u0662.\u0663.\u0664", "1.2.3.4\n",
                "[", "a" * 9999]
)  # fmt: skip
def test_invalid_addresses_count_as_one(garbage: str) -> None:
    assert counted(garbage) == UNKNOWN
    assert client_address(http_request(client=garbage)) is None


@given(st.ip_addresses())
def test_the_logged_address_is_complete_and_normalized(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    logged = client_address(http_request(client=address.exploded.upper()))
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    assert logged == str(mapped or address)


@given(st.text(max_size=60))
def test_no_text_raises_an_error(text: str) -> None:
    assert counted(text)
