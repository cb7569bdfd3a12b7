"""Metrics and audit entries are log lines. No variable of Powertools or Lambda hides them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

EVENTS = Path(__file__).resolve().parents[3] / "events"
NAMES = ("get_ok", "get_status")
SCRIPT = """
import json, sys
from accounts.get_ok import handler
from artifacts.get_status import handler as get_status
from larder.web.audit_log import logger

class Context:
    aws_request_id = "1"
    def get_remaining_time_in_millis(self):
        return 20_000

ok, status = json.load(sys.stdin)
handler(ok, Context())
del status["headers"]["authorization"]
get_status(status, Context())
logger().info("audit")
"""


@pytest.mark.parametrize("level", ["WARN", "FATAL"])
@pytest.mark.parametrize("variable", ["POWERTOOLS_LOG_LEVEL", "AWS_LAMBDA_LOG_LEVEL"])
def test_no_log_level_hides_a_metric(environment: pytest.MonkeyPatch, variable: str, level: str) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.endswith("LOG_LEVEL")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        input=json.dumps([json.loads((EVENTS / f"{name}.json").read_text()) for name in NAMES]),
        env={
            **environ,
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "POWERTOOLS_METRICS_NAMESPACE": "Larder/test",
            variable: level,
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    first, second, third = (json.loads(line) for line in done.stdout.splitlines())
    assert (first["message"], first["status"]) == ("answered", 200)
    assert (second["status"], second["RefusedRequests"]) == (401, 1)
    assert second["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "Larder/test"
    assert third["message"] == "audit"
