"""`larder doctor`, `smoke` and `why` where the only way to Larder is the proxy of a company, with its certificates."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.company_network import HOST, Network

from .cloud import LocalCloud

pytestmark = pytest.mark.e2e

COMMANDS = {"doctor": ("doctor", "."), "smoke": ("smoke", "--large", "1MB"), "why": ("why", "0123456789abcdef")}


@pytest.fixture
def variables(local_cloud: LocalCloud, network: Network, tmp_path: Path) -> dict[str, str]:
    (tmp_path / "turbo.json").write_text("{}")
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        **local_cloud.turbo_environment,
        "TURBO_API": f"https://{HOST}",
        "NODE_EXTRA_CA_CERTS": str(network.certificates),
    }


def run(command: str, variables: Mapping[str, str]) -> tuple[int, str]:
    done = subprocess.run(
        [Path(sys.executable).with_name("larder"), *COMMANDS[command]],
        env=dict(variables),
        cwd=variables["HOME"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.returncode, " ".join((done.stdout + done.stderr).split())


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("proxy", "user"), [("plain", ""), ("password", "ada:a%20b@"), ("tls", ""), ("tls_password", "ada:a%20b@")]
)
def test_the_proxy_of_the_environment_leads_to_larder(
    command: str, proxy: str, user: str, network: Network, variables: dict[str, str]
) -> None:
    address = network.proxies[proxy].replace("//", f"//{user}")
    network.asked.clear()
    status, text = run(command, {**variables, "https_proxy": address})
    assert status == 0, text
    assert set(network.asked) == {f"{HOST}:443"}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("changed", "advice"),
    [
        ({"HTTPS_PROXY": "password"}, "the proxy wants a password"),
        ({"HTTPS_PROXY": "refusing"}, "the proxy refuses the host"),
        ({"HTTPS_PROXY": "http://127.0.0.1:9"}, "check HTTPS_PROXY"),
        ({"HTTPS_PROXY": "plain tls"}, "check HTTPS_PROXY"),
        ({"HTTPS_PROXY": "http://proxy.invalid:3128"}, "check HTTPS_PROXY"),
        ({"HTTPS_PROXY": "plain", "NO_PROXY": ".corp.test"}, "the host does not exist"),
        ({"HTTPS_PROXY": "plain", "TURBO_API": f"https://{HOST}:444"}, "does not reach the host"),
        ({"HTTPS_PROXY": "plain", "NODE_EXTRA_CA_CERTS": ""}, "NODE_EXTRA_CA_CERTS"),
        ({}, "the host does not exist"),
    ],
)
def test_the_cause_is_named(
    command: str, changed: dict[str, str], advice: str, network: Network, variables: dict[str, str]
) -> None:
    proxies = {**network.proxies, "plain tls": network.proxies["tls"].replace("https:", "http:")}
    named = {name: proxies.get(value, value) for name, value in changed.items()}
    status, text = run(command, {**variables, **named})
    assert status == 1
    assert advice.lower() in text.lower()
