"""The first deployment fails half-way. The same command creates the stack, and a deletion leaves nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from tests.deployed.stack import WITHOUT_ALARMS, Stack, packed
from tests.emulator.aws_behaviour import FAIL_AT
from tests.emulator.process import emulator

pytestmark = pytest.mark.e2e

FAILS_AT = 200


@pytest.fixture
def failing(tmp_path: Path) -> Path:
    return tmp_path / "fail-at"


@pytest.fixture
def stack(tmp_path: Path, failing: Path) -> Iterator[Stack]:
    with emulator(tmp_path / "emulator", {FAIL_AT: str(failing)}) as running:
        yield Stack(running, packed(tmp_path / "packed"))


def test_the_same_command_mends_it_and_a_deletion_leaves_nothing(stack: Stack, failing: Path) -> None:
    failing.write_text(str(FAILS_AT))
    failed = stack.try_to_deploy(WITHOUT_ALARMS)
    assert failed.status == 1
    assert "this failure was requested by a test" in failed.text
    assert not failing.exists()
    assert stack.described()["StackStatus"] == "CREATE_FAILED"

    stack.deploy(WITHOUT_ALARMS)
    assert stack.described()["StackStatus"] == "UPDATE_COMPLETE"
    assert stack.described()["EnableTerminationProtection"]
    tables = stack.emulator.client("dynamodb")
    assert len(tables.list_tables()["TableNames"]) == stack.types()["AWS::DynamoDB::Table"]
    with pytest.raises(ClientError, match="TerminationProtection"):
        stack.emulator.client("cloudformation").delete_stack(StackName=stack.name)

    deleted = stack.delete()
    assert deleted.status == 0, deleted.text[-2_000:]
    assert tables.list_tables()["TableNames"] == []
    assert stack.emulator.client("lambda").list_functions()["Functions"] == []
    (kept,) = stack.emulator.client("s3").list_buckets()["Buckets"]
    assert kept["Name"].startswith("larder-code-")
