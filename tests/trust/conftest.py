"""A protected team."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.requests import Cloud
from tests.trust.scene import Scene, make_scene, protected


@pytest.fixture
def unprotected(cloud: Cloud) -> Scene:
    return make_scene(cloud)


@pytest.fixture
def scene(unprotected: Scene) -> Iterator[Scene]:
    """The same, protected."""
    with protected(unprotected.cloud):
        yield unprotected
