"""What AWS does and ministack does not: refuse to delete a protected table or a bucket that is not empty, refuse more
than 4 KB of variables, and name the version of an object in its event. Also lets a test make the creation of a resource
fail.
"""

import json
import os
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any

VARIABLES_BYTES = 4_096
"""All variables of a function, as JSON. Source: https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html"""
ANY_TIME = "EMULATOR_ACCEPTS_ANY_TIME"
"""If set, the clock of a signature does not matter, for tests that change the time."""

FAIL_AT = "EMULATOR_FAILS_AT"
"""The variable that names a file. While the file holds a number N, the Nth resource from then on cannot be created."""

Handler = Callable[..., Any]
_VERSION: ContextVar[str | None] = ContextVar("version of the object", default=None)


def install() -> None:
    """Make ministack behave like AWS in these points."""
    from ministack.services import dynamodb, eventbridge, s3
    from ministack.services.cloudformation.provisioners import _RESOURCE_HANDLERS

    def unless_protected(delete: Handler) -> Handler:
        def checked(physical_id: str, *rest: Any) -> Any:
            table = dynamodb._tables.get(physical_id) or {}
            if _is_true(table.get("DeletionProtectionEnabled")):
                raise ValueError(
                    f"Resource cannot be deleted as it is currently protected against deletion: {physical_id}"
                )
            return delete(physical_id, *rest)

        return checked

    def unless_used(delete: Handler) -> Handler:
        def checked(physical_id: str, *rest: Any) -> Any:
            if (s3._buckets.get(physical_id) or {}).get("objects"):
                raise ValueError(f"The bucket you tried to delete is not empty: {physical_id}")
            return delete(physical_id, *rest)

        return checked

    def with_variables_that_fit(write: Handler) -> Handler:
        def checked(*arguments: Any, **named: Any) -> Any:
            for argument in arguments:
                if isinstance(argument, dict):
                    _check_variables(argument.get("Environment") or {})
            return write(*arguments, **named)

        return checked

    table, bucket = (
        _RESOURCE_HANDLERS["AWS::DynamoDB::Table"],
        _RESOURCE_HANDLERS["AWS::S3::Bucket"],
    )
    table["delete"], bucket["delete"] = (
        unless_protected(table["delete"]),
        unless_used(bucket["delete"]),
    )
    function = _RESOURCE_HANDLERS["AWS::Lambda::Function"]
    for act in ("create", "update"):
        function[act] = with_variables_that_fit(function[act])
    s3._fire_s3_event = _noting_version(s3._fire_s3_event)
    eventbridge._dispatch_event = _with_version(eventbridge._dispatch_event)
    if os.environ.get(ANY_TIME):
        from ministack.core import sigv4

        sigv4.request_time_failure = lambda *_, **__: None
    if path := os.environ.get(FAIL_AT):
        for one in _RESOURCE_HANDLERS.values():
            if "create" in one:
                one["create"] = _failing_on_request(one["create"], Path(path))


def _noting_version(fire: Handler) -> Handler:
    def noting(*arguments: Any, version_id: str | None = None, **named: Any) -> Any:
        token = _VERSION.set(version_id)
        try:
            return fire(*arguments, version_id=version_id, **named)
        finally:
            _VERSION.reset(token)

    return noting


def _with_version(dispatch: Handler) -> Handler:
    def dispatching(event: dict[str, Any], *rest: Any, **named: Any) -> Any:
        if event.get("Source") == "aws.s3" and (version := _VERSION.get()):
            detail = json.loads(event["Detail"])
            detail["object"]["version-id"] = version
            event = {**event, "Detail": json.dumps(detail)}
        return dispatch(event, *rest, **named)

    return dispatching


def _failing_on_request(create: Handler, request: Path) -> Handler:
    def counted(*arguments: Any) -> Any:
        if request.exists():
            left = int(request.read_text()) - 1
            if left == 0:
                request.unlink()
                raise ValueError("this failure was requested by a test")
            request.write_text(str(left))
        return create(*arguments)

    return counted


def _check_variables(environment: dict[str, Any]) -> None:
    variables = environment.get("Variables") or {}
    measured = json.dumps(variables, separators=(",", ":"))
    if len(measured.encode()) > VARIABLES_BYTES:
        raise ValueError(
            "Lambda was unable to configure your environment variables because the environment variables you have "
            f"provided exceeded the 4KB limit. String measured: {measured}"
        )


def _is_true(value: object) -> bool:
    return str(value).lower() == "true"
