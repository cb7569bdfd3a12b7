"""`make record-release` writes the recording of this version."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--record-release",
        action="store_true",
        help="write tests/upgrades/recorded/<version>.json with the data and replies of this version",
    )
