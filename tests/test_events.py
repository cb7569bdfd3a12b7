"""events/ holds one event per function, such as the cloud would send it; `sam local invoke` takes them."""

import base64
import json
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from larder.accounts.email_jobs import parse_job
from larder.artifacts import removal_jobs
from local.gateway.routing import Routes
from local.http_event import build_http_event
from local.template import Schedule, load_template

FOLDER = Path(__file__).resolve().parent.parent / "events"
TEMPLATE = load_template()
ROUTES = {route.key: route for route in TEMPLATE.routes}
SAMPLE_TOKEN = "larder_sample_key"
SAMPLE_SESSION = "LarderSampleSession0000000000000"
TAKEN = (Path(__file__).parent / "functions" / "test_sample_events.py").read_text()
FOR_ANYBODY = {
    "answer_cors_preflight",
    "answer_unknown",
    "exchange_login_code",
    "follow_reset_link",
    "get_ok",
    "request_password_reset",
    "reset_password",
    "request_verification",
    "show_home",
    "show_invitation",
    "show_login",
    "show_login_success",
    "show_openapi",
    "show_password_reset",
    "show_verified",
    "sign_in",
    "sign_up",
    "start_sso_login",
    "verify_email",
}


def module_of(handler: str) -> str:
    return handler.split(".")[-2]


HTTP_EVENTS = sorted({module_of(route.function.handler) for route in TEMPLATE.routes})


def sample(name: str) -> dict[str, Any]:
    event: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return event


def body_of(event: dict[str, Any]) -> bytes:
    text = event.get("body", "")
    return base64.b64decode(text, validate=True) if event["isBase64Encoded"] else text.encode()


def test_every_function_has_one_event() -> None:
    functions = {module_of(function.handler) for function in TEMPLATE.functions}
    assert {path.stem for path in FOLDER.iterdir()} == functions
    assert {path.suffix for path in FOLDER.iterdir()} == {".json"}


def test_every_event_is_sent_to_its_function() -> None:
    """In tests/functions/test_sample_events.py."""
    assert [path.stem for path in FOLDER.iterdir() if f'"{path.stem}"' not in TAKEN] == []


@pytest.mark.parametrize("name", HTTP_EVENTS)
def test_a_request_comes_by_a_route_of_its_function(name: str) -> None:
    event = sample(name)
    route = ROUTES[event["routeKey"]]
    assert module_of(route.function.handler) == name
    assert event["requestContext"]["routeKey"] == event["routeKey"]
    method = event["requestContext"]["http"]["method"]
    assert route.method in (method, "ANY")
    found = Routes(TEMPLATE.routes).find(method, event["rawPath"])
    assert found == (route.function, event["routeKey"], event.get("pathParameters", {}))


@pytest.mark.parametrize("name", HTTP_EVENTS)
def test_a_request_has_the_payload_format_of_the_gateway(name: str) -> None:
    event = sample(name)
    context = event["requestContext"]
    rebuilt = build_http_event(
        context["http"]["method"],
        event["rawPath"],
        event["rawQueryString"],
        list(event["headers"].items()),
        body_of(event),
        route_key=event["routeKey"],
        path_parameters=event.get("pathParameters", {}),
        source_ip=context["http"]["sourceIp"],
        request_id=context["requestId"],
        now=datetime.fromtimestamp(context["timeEpoch"] / 1000, UTC),
        domain_name=context["domainName"],
    )
    rebuilt["requestContext"]["accountId"] = context["accountId"]
    rebuilt["requestContext"]["apiId"] = context["apiId"]
    assert event == rebuilt


@pytest.mark.parametrize("name", HTTP_EVENTS)
def test_a_request_carries_the_sample_token_and_its_length(name: str) -> None:
    event = sample(name)
    sent = event["headers"].get("authorization", "").removeprefix("Bearer ")
    if name == "verify_api_key":
        sent = json.loads(event["body"])["key"]
    assert sent in (("",) if name in FOR_ANYBODY else (SAMPLE_TOKEN, SAMPLE_SESSION))
    assert int(event["headers"].get("content-length", 0)) == len(body_of(event))


def test_the_s3_event_matches_the_rule_of_its_function() -> None:
    event = sample("commit_upload")
    (rule,) = TEMPLATE.event_rules
    assert module_of(rule.function.handler) == "commit_upload"
    assert event["source"] in rule.pattern["source"]
    assert event["detail-type"] in rule.pattern["detail-type"]
    assert event["detail"]["bucket"]["name"] in rule.pattern["detail"]["bucket"]["name"]
    (prefix,) = (one["prefix"] for one in rule.pattern["detail"]["object"]["key"])
    assert event["detail"]["object"]["key"].startswith(prefix)


def test_the_job_of_mail_is_one_that_a_request_hands_over() -> None:
    event = sample("send_account_email")
    assert json.loads(json.dumps(asdict(parse_job(event)))) == event


def test_the_job_of_removal_is_one_that_a_request_hands_over() -> None:
    event = sample("remove_artifacts")
    assert asdict(removal_jobs.parse_job(event)) == event


@pytest.mark.parametrize("schedule", TEMPLATE.schedules, ids=lambda schedule: schedule.name)
def test_the_event_of_a_scheduled_function_is_a_scheduled_event(schedule: Schedule) -> None:
    event = sample(module_of(schedule.function.handler))
    assert (event["source"], event["detail-type"]) == ("aws.events", "Scheduled Event")
    assert event["detail"] == {}
