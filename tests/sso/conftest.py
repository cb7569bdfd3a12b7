"""Quick hashes, and the clock of tests/conftest.py."""

import pytest

from tests.conftest import SetOption


@pytest.fixture(autouse=True)
def quick_hashes(option: SetOption) -> None:
    option("scrypt_cost", 1024)
