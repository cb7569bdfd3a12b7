from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from .deployment import Deployment, Running, deployed, sidecar


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    with deployed() as one:
        yield one


@pytest.fixture
def running(request: pytest.FixtureRequest, deployment: Deployment, tmp_path: Path) -> Iterator[Running]:
    """A sidecar. A parameter is the room of its spool."""
    deployment.room = getattr(request, "param", deployment.room)
    with sidecar(deployment, tmp_path) as one:
        yield one


@pytest.fixture
def turbo(running: Running) -> Iterator[httpx.Client]:
    """turbo in a build of the sidecar."""
    variables = running.sidecar.listener.turbo_variables()
    headers = {"Authorization": f"Bearer {variables['TURBO_TOKEN']}", "User-Agent": "turbo 2.11.11"}
    url = variables["TURBO_API"]
    with httpx.Client(base_url=url, headers=headers, trust_env=False) as client:
        yield client
