"""Shared by the tests of the layer: a module of the integrator."""

import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from larder import extensions


@pytest.fixture
def integrator() -> Iterator[ModuleType]:
    """A module as an integrator's own Lambda layer would provide it."""
    module = ModuleType("integrator")
    sys.modules["integrator"] = module
    yield module
    del sys.modules["integrator"]
    extensions.clear_hooks()
