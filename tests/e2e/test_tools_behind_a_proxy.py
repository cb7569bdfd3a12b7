"""Build tools through `larder run` on a company's network: its proxy sees only the requests of the sidecar."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from tests.company_network import HOST, Network

from . import turbo
from .build_tools import settings
from .cloud import LocalCloud
from .workspaces import SOURCES, Make, Workspace, ccache, delete, needs, nx, sccache, write

pytestmark = [pytest.mark.e2e, needs("gcc")]


def turborepo(root: Path, tools: Path) -> Workspace:
    one = '{"name": "one", "scripts": {"build": "mkdir -p dist && date +%N > dist/out"}}'
    write(
        root,
        {
            "package.json": '{"name": "all", "packageManager": "npm@10.8.2", "workspaces": ["one"]}',
            "turbo.json": '{"tasks": {"build": {"outputs": ["dist/**"]}}}',
            "one/package.json": one,
            "one/unique.txt": secrets.token_hex(8),
        },
    )
    return Workspace(
        root,
        [str(turbo.installed(turbo.NEWEST, tools / "turbo")), "run", "build"],
        lambda: [*root.glob("one/dist/out")],
        lambda: delete(root / ".turbo", root / "one/dist", root / "one/.turbo"),
        {"TURBO_TELEMETRY_DISABLED": "1"},
    )


def curl(root: Path, _: Path) -> Workspace:
    """What docs/tools/plain-http.md shows."""
    root.mkdir()
    asks = 'curl -s -H "Authorization: Bearer $LARDER_PROXY_TOKEN"'
    url = f'"$LARDER_PROXY/plain/docs/{secrets.token_hex(8)}"'
    makes = f"{{ date +%N > out && {asks} -f -T out {url}; }}"
    return Workspace(
        root,
        ["sh", "-c", f"{asks} -f {url} -o out || {makes}"],
        lambda: [root / "out"],
        lambda: (root / "out").unlink(missing_ok=True),
    )


TOOLS: dict[str, tuple[Make, int]] = {
    "nx": (lambda root, tools: nx(root, tools, {"small": 1_000}), 1),
    "sccache": (sccache, SOURCES),
    "ccache": (ccache, 2 * SOURCES),
    "turbo": (turborepo, 1),
    "curl": (curl, 1),
}
"""Each with its number of entries."""


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize(
    ("proxy", "user", "reason"),
    [
        pytest.param("plain", "", "", id="the only way out"),
        *(
            pytest.param(proxy, user, reason, id=name, marks=pytest.mark.thorough)
            for name, proxy, user, reason in (
                ("password", "password", "ada:a%20b@", ""),
                ("tls", "tls_password", "ada:a%20b@", ""),
                ("no password", "password", "", "407"),
                ("403", "refusing", "", "403"),
                ("dead", "dead", "", "HTTPS_PROXY"),
            )
        ),
    ],
)
def test_tools_build_behind_a_proxy(
    proxy: str,
    user: str,
    reason: str,
    tool: str,
    local_cloud: LocalCloud,
    network: Network,
    larder: Path,
    tools: Path,
    tmp_path: Path,
) -> None:
    make, entries = TOOLS[tool]
    address = {**network.proxies, "dead": "http://127.0.0.1:9"}[proxy].replace("//", f"//{user}")
    names = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY", "all_proxy")
    env = {
        **settings(local_cloud, tmp_path),
        "TURBO_API": f"https://{HOST}",
        "NODE_EXTRA_CA_CERTS": str(network.certificates),
        **dict.fromkeys(names, address),
    }
    workspace = make(tmp_path / "workspace", tools)
    network.asked.clear()
    cold, text = workspace.build(larder, env)
    built = workspace.digests()
    warm, _ = workspace.build(larder, env)
    assert set(network.asked) <= {f"{HOST}:443"}
    if reason:
        assert (cold.hits, cold.stored, warm.hits, warm.stored) == (0, 0, 0, 0)
        assert f"Larder does not answer ({'the proxy answers ' * reason.isdigit()}" in text, text
        assert reason in text
    else:
        assert (cold, warm) == ((0, entries, entries, 0), (entries, 0, 0, 0))
        assert workspace.digests() == built
