"""The parts of Powertools that no function imports work for code that needs them."""

import subprocess
import sys

REST = """
import larder.web.powertools.resolver as ours
from aws_lambda_powertools.event_handler import content_types
from aws_lambda_powertools import Logger, Metrics, Tracer
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, AppSyncResolver, Request
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2, SQSEvent
from aws_lambda_powertools.utilities.jmespath_utils import query

assert APIGatewayHttpResolver is ours.APIGatewayHttpResolver
assert Request is ours.Request
assert query({"a": 1}, "a") == 1
Metrics, Tracer, AppSyncResolver(), SQSEvent({}), APIGatewayProxyEventV2({})
try:
    from aws_lambda_powertools import Missing
except ImportError:
    print("complete")
"""


def test_the_rest_of_powertools_can_be_imported_afterwards() -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", REST], capture_output=True, text=True)
    assert done.stdout == "complete\n", done.stderr
