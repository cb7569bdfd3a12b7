"""One local cloud for the tests that only send requests. Tests that stop or kill it start their own."""

from collections.abc import Iterator

import pytest

from tests.local.stub_service import StubCloud


@pytest.fixture(scope="session")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StubCloud]:
    cloud = StubCloud(
        tmp_path_factory.mktemp("cloud"), workers=2, LARDER_GREETING="good day", AWS_PROFILE="own", EXPIRY_SECONDS="1"
    )
    yield cloud
    cloud.stop()
