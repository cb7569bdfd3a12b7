"""A deployment with the longest stack name and every option at its longest value."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deployed.stack import WITHOUT_ALARMS, Stack, packed
from tests.deploying import obey
from tests.emulator.process import emulator
from tests.variables import LONGEST_STACK_NAME, MOST_BYTES, TEXTS, longest_options, measured

pytestmark = pytest.mark.e2e


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    with emulator(tmp_path / "emulator") as running:
        yield Stack(running, packed(tmp_path / "packed"), name=LONGEST_STACK_NAME)


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
