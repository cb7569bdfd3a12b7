"""Functions import only the parts of Powertools that they use, and the rest works for code that needs it."""

import subprocess
import sys

import pytest

from tests.loaded import loaded_by

CACHE = ["get_status", "artifact_exists", "fetch_artifact", "put_artifact", "query_artifacts"]
OTHERS = ["api_keys.verify_api_key", "accounts.get_session"]
SLOW = {"asyncio", "boto3", "botocore", "email", "http.client", "jmespath", "ssl", "xml.etree"}


@pytest.mark.parametrize("module", [*(f"artifacts.{name}" for name in CACHE), *OTHERS])
def test_functions_that_builds_wait_for_start_without_slow_imports(module: str) -> None:
    loaded = loaded_by(module)
    # pydantic, which checks the body of a verification, imports it.
    assert SLOW & loaded <= ({"email"} if "pydantic" in loaded else set())


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
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", REST], capture_output=True, text=True
    )
    assert done.stdout == "complete\n", done.stderr
