"""`turbo link`, `login` and `logout` of the newest turbo, with the token that the local cloud printed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from . import turbo
from .cloud import LocalCloud
from .monorepo import Package, generate, wipe_outputs_and_local_cache

pytestmark = pytest.mark.e2e


@dataclass(frozen=True)
class Laptop:
    """A monorepo, and a turbo with its token in the user's home folder and no team in its environment."""

    client: turbo.Client
    monorepo: Path

    @property
    def stored_token(self) -> str | None:
        """The data of a login that turbo keeps."""
        token: str | None = json.loads(self._kept.read_text()).get("token")
        return token

    def sign_in(self, token: str) -> None:
        self._kept.parent.mkdir(parents=True)
        self._kept.write_text(json.dumps({"token": token}))

    def asks(self, *arguments: str) -> str:
        return turbo.command(self.client, self.monorepo, *arguments)

    @property
    def _kept(self) -> Path:
        return self.client.home / ".config" / "turborepo" / "config.json"


@pytest.fixture
def laptop(
    request: pytest.FixtureRequest,
    local_cloud: LocalCloud,
    fresh_monorepo: Callable[..., Path],
    home: Path,
    tmp_path: Path,
) -> Laptop:
    template = tmp_path / "template"
    generate(template, [Package("one", 1_000)], home=home)
    own_home = tmp_path / "home"
    own_home.mkdir()
    command = turbo.installed(turbo.NEWEST, request.config.rootpath / ".tools" / "turbo")
    client = turbo.Client(command, turbo.NEWEST, {"TURBO_API": local_cloud.url}, own_home)
    return Laptop(client, fresh_monorepo(turbo.NEWEST, seed="link", template=template))


def test_a_linked_monorepo_uses_the_cache_until_logout(laptop: Laptop, local_cloud: LocalCloud) -> None:
    token = local_cloud.token
    laptop.sign_in(token)
    mark = local_cloud.log_size()

    linked = laptop.asks("link", "--yes", "--scope", local_cloud.team)

    assert "Success!" in linked
    requests = [(request.method, request.path, request.status) for request in local_cloud.requests_since(mark)]
    assert ("GET", "/v2/user", 200) in requests
    assert ("GET", "/v2/teams", 200) in requests
    cold = turbo.build(laptop.client, laptop.monorepo)
    wipe_outputs_and_local_cache(laptop.monorepo)
    laptop.asks("link", "--yes", "--scope", local_cloud.team)
    warm = turbo.build(laptop.client, laptop.monorepo)
    assert (cold.cached, warm.remote_hits) == (0, frozenset({"one"}))

    mark = local_cloud.log_size()
    # With a token, turbo does not ask for another.
    assert "Using existing login" in laptop.asks("login", "--login", local_cloud.url)
    again = {request.path: request.status for request in local_cloud.requests_since(mark)}
    assert again["/v5/user/tokens/current"] == 200

    laptop.asks("logout", "--invalidate")

    assert laptop.stored_token is None
    refused = httpx.get(f"{local_cloud.url}/v2/user", headers={"Authorization": f"Bearer {token}"}, trust_env=False)
    assert refused.status_code == 401
