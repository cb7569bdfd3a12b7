"""These tests need what `make deployed` builds and installs."""

import os

import pytest

from tests.deployed.cloud import DeployedCloud
from tests.deployed.stack import Stack

collect_ignore_glob = [] if os.environ.get("CLOUD") == "deployed" else ["test_*.py"]


@pytest.fixture(scope="module")
def stack(cloud: DeployedCloud) -> Stack:
    """The stack of the module's `cloud`."""
    assert cloud.stack is not None
    return cloud.stack
