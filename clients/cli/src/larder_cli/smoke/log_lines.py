"""Check the log of a stack: a line for each request, with the key's id and without the key."""

import json
import time
from datetime import datetime
from typing import Any

from larder import clock
from larder_cli.outcomes import Failed
from larder_cli.smoke.checks import Site

TIMEOUT_S = 30.0
_BETWEEN_LOOKS_S = 2.0
_LOG_GROUP = "ArtifactsLogGroup"
"""The logical id of the log group of all functions that smoke calls."""


def requests_are_logged(
    site: Site, stack: str, began: datetime, *, timeout_s: float = TIMEOUT_S
) -> str:
    """Look up each of the site's request ids in the log of its function. Raises Failed."""
    deadline = time.monotonic() + timeout_s
    for function, request_id in site.request_ids.items():
        if not request_id:
            raise Failed(
                f"the response of {function} has no apigw-requestid",
                "a proxy in front of the API drops it: configure it to pass the header, which traces failures",
            )
        text = _logged(stack, function, request_id, began, deadline)
        if site.key in text:
            raise Failed(f"the log of {function} contains the key itself", "revoke it at once")
        line = _answered(text, request_id)
        if not line.get("key_id") or not line.get("owner"):
            raise Failed(
                f"the log line of {function} has no key_id or no owner",
                "another version of the function runs: deploy again",
            )
    return f"{len(site.request_ids)} requests found"


def _logged(stack: str, function: str, request_id: str, began: datetime, deadline: float) -> str:
    """The lines with the request's id. Waits for them until the deadline, because they take seconds to arrive."""
    from larder import aws

    resource = aws.cloudformation().describe_stack_resource(
        StackName=stack, LogicalResourceId=_LOG_GROUP
    )
    group = resource["StackResourceDetail"]["PhysicalResourceId"]
    while True:
        found = aws.cloudwatch_logs().filter_log_events(
            logGroupName=group, filterPattern=f'"{request_id}"', startTime=clock.to_ms(began)
        )
        if found["events"]:
            return "\n".join(event["message"] for event in found["events"])
        if time.monotonic() > deadline:
            raise Failed(
                f"the log of {function} does not contain the request",
                "the function's role lacks the permission to write its log, or its log level is no longer INFO",
            )
        time.sleep(_BETWEEN_LOOKS_S)


def _answered(text: str, request_id: str) -> dict[str, Any]:
    for line in text.splitlines():
        entry = json.loads(line) if line.startswith("{") else {}
        if entry.get("request_id") == request_id and entry.get("message") == "answered":
            return dict(entry)
    return {}
