"""Which proxy a request takes."""

from contextlib import closing
from pathlib import Path

import pytest
from larder_proxy.address import Address
from larder_proxy.connections import Pool
from larder_proxy.proxies import proxy_for
from larder_proxy.spool import Body

from tests.company_network import HOST, company_network

from .deployment import KEY, Deployment

PROXY = "http://proxy.corp:3128"


def address(scheme: str, host: str) -> Address:
    return Address(f"{scheme}://{f'[{host}]' if ':' in host else host}/v8/artifacts")


@pytest.mark.parametrize(
    ("exceptions", "host", "is_direct"),
    [
        ("", "cache.corp", False),
        ("*", "cache.corp", True),
        ("corp", "cache.corp", True),
        (".corp", "cache.corp", True),
        ("*.corp", "cache.corp", True),
        ("other, .CORP", "cache.corp", True),
        ("other .corp", "cache.corp", True),
        ("corp", "CORP", True),
        ("corp", "cachecorp", False),
        ("cache.corp:443", "cache.corp", True),
        ("cache.corp:8443", "cache.corp", False),
        ("cache.corp:x", "cache.corp", False),
        ("10.0.0.0/8", "10.1.2.3", True),
        ("10.0.0.0/8", "11.1.2.3", False),
        ("10.0.0.0/8", "cache.corp", False),
        ("10.1.2.3", "10.1.2.3", True),
        ("::1", "::1", True),
        ("[::1]:443", "::1", True),
        ("fd00::/8", "fd00::5", True),
        ("feed.ab", "cache.feed.ab", True),
    ],
)
def test_no_proxy_names_hosts_in_the_usual_forms(exceptions: str, host: str, is_direct: bool) -> None:
    for lower, other in ((True, False), (False, True)):
        names = ("https_proxy" if lower else "HTTPS_PROXY", "no_proxy" if other else "NO_PROXY")
        found = proxy_for({names[0]: PROXY, names[1]: exceptions}, address("https", host))
        assert found == ("" if is_direct else PROXY)


def test_each_scheme_has_a_proxy_of_its_own() -> None:
    assert proxy_for({"HTTP_PROXY": PROXY}, address("https", "cache.corp")) == ""
    assert proxy_for({"HTTP_PROXY": PROXY}, address("http", "cache.corp")) == PROXY


@pytest.mark.parametrize("kind", ["plain", "password", "tls", "tls_password"])
def test_bodies_of_every_size_pass_a_proxy(kind: str, deployment: Deployment, tmp_path: Path) -> None:
    headers = {"Authorization": f"Bearer {KEY}"}
    with company_network(tmp_path, deployment.url) as network:
        user = "ada:a%20b@" if "password" in kind else ""
        proxy = network.proxies[kind].replace("//", f"//{user}")
        known = {"https_proxy": proxy, "NODE_EXTRA_CA_CERTS": str(network.certificates)}
        with closing(Pool(known)) as pool:
            for size in (1, 3_000_000, 2):
                url = f"https://{HOST}/v8/artifacts/{size:016x}"
                content = b"x" * size
                assert pool.request("PUT", url, headers, Body(content)).read() == b'{"urls": []}'
                deployment.artifacts[f"{size:016x}"] = content[:299_999]
                found = pool.request("GET", url, headers).read(10**7)
                assert found == content[:299_999]
    # One connection for all.
    assert network.asked == [f"{HOST}:443"]
