"""Rules of a team, and a protected team."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from larder import clock
from larder.settings import settings
from larder.trust.models import NewRule, Rule
from larder.trust.rules import create_rule
from tests.issuer import ORIGIN
from tests.requests import Cloud
from tests.trust.scene import Scene, make_scene, protected


def made_rule(cloud: Cloud, **new: Any) -> Rule:
    origin = settings().base_url or ORIGIN
    return create_rule(cloud.team.id, NewRule(**new), by=None, origin=origin, now=clock.now())


@pytest.fixture
def unprotected(cloud: Cloud) -> Scene:
    return make_scene(cloud)


@pytest.fixture
def scene(unprotected: Scene) -> Iterator[Scene]:
    """The same, protected."""
    with protected(unprotected.cloud):
        yield unprotected
