"""The client's IP address, as far as it can be trusted."""

import ipaddress
import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from larder.settings import listed, settings

if TYPE_CHECKING:
    from larder.web.powertools.resolver import Request

UNKNOWN = "unknown"
"""The rate limit key of requests without a valid address."""

_NETWORK_BITS = 64
_WITH_PORT = re.compile(r"\[(?P<v6>[^\]]+)\](?::[0-9]+)?|(?P<v4>[0-9.]+):[0-9]+")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def client_address(request: "Request") -> str | None:
    """The client's address in canonical form, v4-mapped IPv6 as v4. None if there is no valid address.

    Without proxies it is the caller of the API. Behind `trusted_proxy_hops` proxies it is the entry of X-Forwarded-For
    that the outermost of them added. Entries are counted from the right, because clients can write those on the left.
    """
    address = _parse(_claimed_address(request.resolved_event))
    return None if address is None else str(address)


def counted_address(request: "Request") -> str:
    """The rate limit key: an IPv4 address, or the /64 of an IPv6 address, because one customer usually has it all."""
    address = _parse(_claimed_address(request.resolved_event))
    if isinstance(address, ipaddress.IPv6Address):
        host_bits = address.max_prefixlen - _NETWORK_BITS
        return f"{ipaddress.IPv6Address(int(address) >> host_bits << host_bits)}/{_NETWORK_BITS}"
    return UNKNOWN if address is None else str(address)


def address_outside(event: Mapping[str, Any]) -> str | None:
    """The client's address, or UNKNOWN, if none of `allowed_networks` has it. None if one has."""
    address = _parse(_claimed_address(event))
    if address is None:
        return UNKNOWN
    networks = _networks(settings().allowed_networks)
    return None if any(address in network for network in networks) else str(address)


@cache
def _networks(option: str) -> "tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]":
    return tuple(ipaddress.ip_network(network, strict=False) for network in listed(option))


def _claimed_address(event: Mapping[str, Any]) -> str:
    caller: str = event["requestContext"]["http"]["sourceIp"]
    hops = settings().trusted_proxy_hops
    if hops == 0:
        return caller
    # Each proxy appends its caller. The gateway is last and appends the innermost proxy.
    forwarded: list[str] = event["headers"].get("x-forwarded-for", "").split(",")
    # A request that bypassed some of the proxies is counted under its sender. So is one without the gateway's entry:
    # clients can write those before it.
    if len(forwarded) > hops and _parse(forwarded[-1]) == _parse(caller):
        return forwarded[-1 - hops]
    return caller


def _parse(text: str) -> Address | None:
    text = text.strip(" \t")
    if match := _WITH_PORT.fullmatch(text):
        text = match["v6"] or match["v4"]
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address):
        # By its number, so that a zone (`%eth0`) makes no second address of it.
        return address.ipv4_mapped or ipaddress.IPv6Address(int(address))
    return address
