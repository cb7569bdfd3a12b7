"""A deployment with the longest stack name and every option at its longest value."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deployed.emulator import Emulator
from tests.deployed.stack import Stack, packed
from tests.deploying import obey
from tests.variables import LONGEST_STACK_NAME, MOST_BYTES, TEXTS, longest_options, measured

pytestmark = pytest.mark.e2e

WITHOUT_ALARMS = {"Alarms": "false"}
"""The emulator does not support alarms that combine several metrics."""


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    emulator = Emulator(tmp_path / "emulator")
    try:
        emulator.wait_until_ready()
        yield Stack(emulator, packed(tmp_path / "packed"), name=LONGEST_STACK_NAME)
    finally:
        emulator.stop()


def test_the_variables_of_every_function_fit(stack: Stack) -> None:
    # The emulator refuses variables of more than 4,096 bytes, as Lambda does.
    bucket, s3 = "b" * 63, stack.emulator.client("s3")
    s3.create_bucket(Bucket=bucket)
    options = {**WITHOUT_ALARMS, **longest_options(), "ExistingBucket": bucket}
    obey(s3, stack.try_to_deploy(options).text)
    stack.deploy(options)
    functions = [
        function
        for page in stack.emulator.client("lambda").get_paginator("list_functions").paginate()
        for function in page["Functions"]
    ]
    sizes = {one["FunctionName"]: measured(one["Environment"]["Variables"]) for one in functions}
    assert len(sizes) == stack.types()["AWS::Lambda::Function"]
    widest = max(sizes, key=lambda name: sizes[name])
    # Names of tables are shorter in the emulator. tests/test_template.py counts the longest.
    assert MOST_BYTES - 400 < sizes[widest] <= MOST_BYTES
    given = {value for one in functions for value in one["Environment"]["Variables"].values()}
    assert set(TEXTS.values()) <= given
    assert any(f"artifacts_bucket={bucket} " in value for value in given)
