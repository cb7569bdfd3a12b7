"""What tests of the layer share: a module of the integrator's."""

import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from larder import extensions


@pytest.fixture
def integrator() -> Iterator[ModuleType]:
    """A module of the integrator's, as their layer would bring it."""
    module = ModuleType("integrator")
    sys.modules["integrator"] = module
    yield module
    del sys.modules["integrator"]
    extensions.forget_functions()
