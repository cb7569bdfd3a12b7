"""`make record-release` has this version write the recording of its release."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--record-release",
        action="store_true",
        help="write tests/upgrades/recorded/<version>.json from what this version stores and answers",
    )
