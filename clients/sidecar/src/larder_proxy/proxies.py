"""The proxy of a request: that of HTTPS_PROXY or HTTP_PROXY, except for what NO_PROXY names."""

from __future__ import annotations

import re
from collections.abc import Mapping

from larder_proxy.address import Address


def proxy_for(environment: Mapping[str, str], to: Address) -> str:
    """The address of the proxy, `""` for none."""
    proxy = _value(environment, f"{to.scheme.upper()}_PROXY")
    exceptions = re.split(r"[,\s]+", _value(environment, "NO_PROXY").lower()) if proxy else []
    return "" if any(_names(exception, to.host, to.port) for exception in exceptions) else proxy


def _value(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name) or environment.get(name.lower()) or ""


def _names(exception: str, host: str, port: int) -> bool:
    """Whether an exception such as `.corp`, `*.corp`, `host:8443`, `[::1]`, `10.0.0.0/8` or `*` names a host."""
    match = re.fullmatch(r"\[(.*)\](?::(\d+))?|([^:]*):(\d+)|(.*)", exception)
    if match is None or int(match[2] or match[4] or port) != port:
        return False
    name = match[1] or match[3] or match[5] or ""
    if name == "*":
        return True
    if re.fullmatch(r"[\d.:a-f/]+", name):
        import ipaddress

        try:
            return ipaddress.ip_address(host) in ipaddress.ip_network(name, strict=False)
        except ValueError:
            pass
    name = name.lstrip("*.")
    return bool(name) and f".{host}".endswith(f".{name}")
