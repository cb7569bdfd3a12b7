"""What AWS does and ministack does not: refuse to delete a protected table or a bucket that is not empty, refuse more
than 4 KB of variables, refuse limits of unknown routes and keep the others, name the version of an object in its event,
read the version that a template's URL names, describe a stack as its template does, create alarms that combine metrics,
let email subscriptions wait for their confirmation, and check two more permissions of Lambda. Also lets a test make a
resource fail.
"""

import json
import os
from collections.abc import Callable
from contextvars import ContextVar
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

VARIABLES_BYTES = 4_096
"""All variables of a function, as JSON. Source: https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html"""
ANY_TIME = "EMULATOR_ACCEPTS_ANY_TIME"
"""If set, the clock of a signature does not matter, for tests that change the time."""

FAIL_AT = "EMULATOR_FAILS_AT"
"""The variable that names a file. While the file holds a number N, the Nth resource from then on cannot be created.
While it holds a logical id, that resource cannot be updated."""

THROTTLED = "throttled"
"""In this file, the next resource is refused because there are too many requests. With a number N after it, every Nth
resource from then on is."""

Handler = Callable[..., Any]
_CREATIONS = count(1)
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

    table, bucket = (_RESOURCE_HANDLERS["AWS::DynamoDB::Table"], _RESOURCE_HANDLERS["AWS::S3::Bucket"])
    table["delete"], bucket["delete"] = (unless_protected(table["delete"]), unless_used(bucket["delete"]))
    function = _RESOURCE_HANDLERS["AWS::Lambda::Function"]
    for act in ("create", "update"):
        function[act] = with_variables_that_fit(function[act])
    _limit_only_routes()
    _alarm_on_several_metrics()
    _await_confirmation()
    _check_reads_of_lambda()
    _read_change_sets()
    s3._fire_s3_event = _noting_version(s3._fire_s3_event)
    eventbridge._dispatch_event = _with_version(eventbridge._dispatch_event)
    if os.environ.get(ANY_TIME):
        from ministack.core import sigv4

        sigv4.request_time_failure = lambda *_, **__: None
    if path := os.environ.get(FAIL_AT):
        for resource_handler in _RESOURCE_HANDLERS.values():
            if "create" in resource_handler:
                resource_handler["create"] = _failing_on_request(resource_handler["create"], Path(path))
            if "update" in resource_handler:
                resource_handler["update"] = _failing_by_name(resource_handler["update"], Path(path))


def _limit_only_routes() -> None:
    """Limits of a route that the API lacks are refused, and kept until DeleteRouteSettings removes them.

    Sources: https://github.com/aws/serverless-application-model/issues/1939,
    https://github.com/DianaIonita/serverless-api-gateway-throttling/issues/33
    """
    from ministack.services import apigateway
    from ministack.services.cloudformation import provisioners
    from ministack.services.cloudformation.provisioners import _RESOURCE_HANDLERS

    routes: dict[str, set[str]] = {}
    api = _RESOURCE_HANDLERS["AWS::ApiGatewayV2::Api"]
    create_api, update_api = api["create"], api["update"]
    stage_properties, handle = provisioners._apigw_v2_stage_props, apigateway.handle_request

    def checked(api_id: str, settings: dict[str, Any]) -> dict[str, Any]:
        for key in settings:
            if key not in routes.get(api_id, set()):
                raise ValueError(
                    f"Unable to find Route by key {key} within the provided RouteSettings (Service: AmazonApiGatewayV2;"
                    " Status Code: 404; Error Code: NotFoundException)"
                )
        return settings

    def noting(reply: Any, properties: dict[str, Any]) -> Any:
        paths = (properties.get("Body") or {}).get("paths") or {}
        routes[reply[0]] = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
        return reply

    def merged(properties: dict[str, Any]) -> dict[str, Any]:
        api_id, name = properties.get("ApiId", ""), properties.get("StageName", "$default")
        kept = (apigateway._stages.get(api_id, {}).get(name) or {}).get("routeSettings") or {}
        given = stage_properties(properties)
        return {**given, "routeSettings": checked(api_id, {**kept, **given["routeSettings"]})}

    async def handling(method: str, path: str, *rest: Any, **named: Any) -> Any:
        api_path, separator, key = path.partition("/routesettings/")
        if method != "DELETE" or not separator:
            return await handle(method, path, *rest, **named)
        *_, api_id, _, name = unquote(api_path).split("/")
        del apigateway._stages[api_id][name]["routeSettings"][unquote(key)]
        return 204, {}, b""

    api["create"] = lambda name, properties, *rest: noting(create_api(name, properties, *rest), properties)
    api["update"] = lambda id, old, new, *rest: noting(update_api(id, old, new, *rest), new)
    provisioners._apigw_v2_stage_props = merged
    apigateway.handle_request = handling


def _alarm_on_several_metrics() -> None:
    """An alarm on an expression is created, with the first metric of the expression in its place."""
    from ministack.services.cloudformation import provisioners

    recorded = provisioners._cw_metric_alarm_record

    def with_first_metric(name: str, properties: dict[str, Any]) -> Any:
        measured = [one["MetricStat"] for one in properties.get("Metrics") or [] if "MetricStat" in one]
        if not measured:
            return recorded(name, properties)
        metric = measured[0]["Metric"]
        first = {name: metric[name] for name in ("Namespace", "MetricName", "Dimensions")}
        return recorded(name, {**properties, **first, "Metrics": None})

    provisioners._cw_metric_alarm_record = with_first_metric


def _await_confirmation() -> None:
    """An email subscription is pending until ConfirmSubscription. The token, which AWS mails, is the address here."""
    from ministack.services import sns

    list_, confirm = sns._list_subscriptions_by_topic, sns._confirm_subscription

    def pending(parameters: dict[str, Any]) -> list[dict[str, Any]]:
        topic = sns._topics.get(sns._p(parameters, "TopicArn")) or {"subscriptions": []}
        by_mail = [subscription for subscription in topic["subscriptions"] if subscription["protocol"] == "email"]
        for one in by_mail:
            if one.get("token") is None and not one.get("was_asked"):
                one.update(confirmed=False, token=one["endpoint"], was_asked=True)
        return [one for one in by_mail if not one["confirmed"]]

    def listing(parameters: dict[str, Any]) -> Any:
        hidden = [one["arn"] for one in pending(parameters)]
        status, headers, body = list_(parameters)
        for arn in hidden:
            body = body.replace(arn.encode(), b"PendingConfirmation")
        return status, headers, body

    def confirming(parameters: dict[str, Any]) -> Any:
        pending(parameters)
        return confirm(parameters)

    sns._list_subscriptions_by_topic, sns._confirm_subscription = listing, confirming


def _check_reads_of_lambda() -> None:
    """GetAccountSettings and GetLayerVersion need their permission. Nothing lists layers, which has the same path."""
    from ministack.core import iam_actions

    action_of = iam_actions._lambda_action

    def checked(method: str, path: str) -> Any:
        if path.rstrip("/").endswith("/account-settings"):
            return "GetAccountSettings"
        if method == "GET" and path.rstrip("/").endswith("/layers"):
            return "GetLayerVersion"
        return action_of(method, path)

    iam_actions._lambda_action = checked


def _read_change_sets() -> None:
    """A template's URL can name a version, and a stack has the description of the change set that was executed last."""
    from ministack.services import s3
    from ministack.services.cloudformation import _stacks, changesets, handlers, helpers

    resolve = helpers._resolve_document

    def versioned(parameters: dict[str, Any], body: str, url: str, label: str) -> Any:
        address, _, version = helpers._p(parameters, url).partition("?versionId=")
        if not version:
            return resolve(parameters, body, url, label)
        bucket, _, key = urlsplit(address).path.lstrip("/").partition("/")
        found = s3._get_object_data(bucket, unquote(key), unquote(version))
        if found is None:
            return None, helpers._error("ValidationError", f"S3 error: no version {version}")
        return found.decode(), None

    actions = handlers._ACTION_HANDLERS
    execute = actions["ExecuteChangeSet"]

    def executing(parameters: dict[str, Any]) -> Any:
        names = (helpers._p(parameters, one) for one in ("ChangeSetName", "StackName"))
        _, made = changesets._find_change_set(*names)
        if made and made["StackName"] in _stacks:
            described = made["_template"].get("Description", "")
            _stacks[made["StackName"]]["Description"] = described
        return execute(parameters)

    helpers._resolve_document, actions["ExecuteChangeSet"] = versioned, executing


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
        asked = request.read_text() if request.exists() else ""
        word, _, every = asked.partition(" ")
        if word == THROTTLED and (not every or next(_CREATIONS) % int(every) == 0):
            if not every:
                request.unlink()
            raise ValueError("Rate exceeded (Service: Lambda, Status Code: 429)")
        if asked.isdecimal():
            left = int(asked) - 1
            if left == 0:
                request.unlink()
                raise ValueError("this failure was requested by a test")
            request.write_text(str(left))
        return create(*arguments)

    return counted


def _failing_by_name(update: Handler, request: Path) -> Handler:
    def checked(*arguments: Any) -> Any:
        if request.exists() and request.read_text() == arguments[-1]:
            request.unlink()
            raise ValueError("this failure was requested by a test")
        return update(*arguments)

    return checked


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
