"""After a failed background run, Lambda sends a message to the function's queue under the function's role."""

import pytest

from tests.permissions import RESOURCES
from tests.rehearsal.acting import Rehearsal

QUEUES = {
    name: resource["Properties"]["EventInvokeConfig"]["DestinationConfig"]["OnFailure"]["Destination"]["Fn::GetAtt"]
    for name, resource in RESOURCES.items()
    if "EventInvokeConfig" in resource.get("Properties", {})
}
"""The destination in the template, by function: `QueueName.Arn`."""


@pytest.mark.parametrize(("function", "target"), QUEUES.items(), ids=QUEUES)
def test_a_role_allows_sending_a_failed_run_to_its_queue(
    environment: object, rehearsed: Rehearsal, function: str, target: str
) -> None:
    rehearsed.call(
        function,
        "sqs",
        "send_message",
        ("sqs:SendMessage", target),
        QueueUrl=rehearsed.stack.queue_url(target.removesuffix(".Arn")),
        MessageBody="{}",
    )
