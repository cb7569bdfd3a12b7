"""`larder smoke`: its target, its advice and its log lookup. tests/e2e/test_smoke.py runs all checks."""

import json
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import BoundedSemaphore, Thread

import pytest

from larder import aws, clock
from larder_cli.http import Answer, Unreachable, about_silence, exchange
from larder_cli.outcomes import Failed
from larder_cli.smoke.advice import about, about_storage, summary
from larder_cli.smoke.checks import (
    CHECKS,
    ESSENTIAL,
    Site,
    account_runs_enough_functions,
    requests_at_once_are_answered,
)
from larder_cli.smoke.log_lines import requests_are_logged

from .conftest import OUTPUTS, Larder
from .fake_aws import FakeAws

KEY = "larder_" + "k" * 64
DOCS = Path(__file__).resolve().parents[2] / "docs"


def answer(status: int, body: object) -> Answer:
    return Answer(status, {}, json.dumps(body).encode())


# ---------------------------------------------------------------------------------------- the target


@pytest.fixture(autouse=True)
def no_client_is_set_up(own_environment: pytest.MonkeyPatch) -> None:
    for variable in ("TURBO_API", "TURBO_TOKEN", "TURBO_TEAM"):
        own_environment.delenv(variable, raising=False)


def test_without_a_url_or_a_key_nothing_is_sent() -> None:
    larder = Larder()
    assert "--url" in larder.refusal("smoke", "--key", KEY, status=2)
    assert "--key" in larder.refusal("smoke", "--url", "http://127.0.0.1:1", status=2)
    for url in ("cache.example.com", "ftp://cache.example.com", "https://"):
        refusal = larder.refusal("smoke", "--url", url, "--key", KEY, status=2)
        assert f"{url} is not a URL" in refusal


def unused_url() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}"


def test_without_a_response_it_stops_and_says_why() -> None:
    url = unused_url()
    result = Larder()("smoke", "--url", url, "--key", KEY, "--json", status=1)
    output = json.loads(result.stdout)
    assert (output["url"], output["failed"], len(output["checks"])) == (url, 1, 1)
    (check,) = output["checks"]
    assert (check["check"], check["outcome"]) == ("the URL responds", "failed")
    assert "nothing listens there" in check["advice"]
    shown = Larder()("smoke", "--url", url, "--key", KEY, status=1).stdout
    assert "FAILED  the URL responds" in shown
    assert "do: nothing listens there" in shown
    assert "0 of 1 checks passed" in shown
    assert KEY not in result.output + shown


def test_values_of_a_local_cloud_override_environment_variables(
    tmp_path: Path, own_environment: pytest.MonkeyPatch
) -> None:
    url = unused_url()
    (tmp_path / "turbo.env").write_text(f"TURBO_API={url}\nTURBO_TOKEN={KEY}\nTURBO_TEAM=acme\n")
    own_environment.setenv("TURBO_API", "https://another.example.com")
    larder = Larder(("--local", str(tmp_path)))
    assert json.loads(larder("smoke", "--json", status=1).stdout)["url"] == url
    other = unused_url()
    typed = larder("smoke", "--json", "--url", other, status=1)
    assert json.loads(typed.stdout)["url"] == other


def test_a_folder_without_a_local_cloud_is_reported(tmp_path: Path) -> None:
    assert "make serve" in Larder(("--local", str(tmp_path))).refusal("smoke")


def test_the_url_comes_from_the_stack(stack: FakeAws, own_environment: pytest.MonkeyPatch) -> None:
    url = unused_url()
    stack.holds_stack({**OUTPUTS, "ApiUrl": f"{url}/"}, {})
    own_environment.setenv("TURBO_API", "https://another.example.com")
    own_environment.setenv("TURBO_TOKEN", KEY)
    larder = Larder(("--stack", "larder", "--region", "eu-central-1"))
    assert json.loads(larder("smoke", "--json", status=1).stdout)["url"] == url


# ------------------------------------------------------------------------------------------ advice


def test_check_names_are_unique() -> None:
    names = [name for name, _ in CHECKS]
    assert len(names) == len(set(names))
    assert set(names) >= ESSENTIAL


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("unauthorized", "larder keys create"),
        ("account_soft_blocked", "--unblock"),
        ("payment_missing", "--unblock"),
        ("not_a_team_member", "--team"),
        ("read_only", "a key that can write"),
        ("missing_permission", "artifacts=read,write"),
        ("not_found", "without a path"),
        ("remote_caching_disabled", "--caching enabled"),
        ("remote_caching_paused", "--caching enabled"),
        ("remote_caching_over_limit", "--quota"),
        ("rate_limited", "rate limit"),
        ("internal_error", "docs/operations.md"),
        ("try_again", "again"),
    ],
)
def test_advice_about_errors_of_larder(code: str, words: str) -> None:
    assert f"`{code}`" in (DOCS / "errors.md").read_text()
    refused = answer(400, {"error": {"code": code}, "code": code, "message": "No."})
    assert words in about(refused)
    assert summary(refused) == f"400 {code}: No."


@pytest.mark.parametrize(
    ("refused", "words"),
    [
        (answer(403, {"message": "Forbidden"}), "domain"),
        (answer(404, {"message": "Not Found"}), "not Larder"),
        (answer(429, {"message": "Too Many Requests"}), "ThrottlingRate"),
        (answer(500, {"message": "Internal Server Error"}), "log"),
        (answer(500, {"message": "Internal Server Error"}), "get-account-settings"),
        (answer(503, {"message": "Service Unavailable"}), "too long"),
        (answer(503, {"message": "Service Unavailable"}), "get-account-settings"),
        (Answer(200, {}, b"<!DOCTYPE html>\n<title>Sign in</title>"), "not Larder"),
        (Answer(502, {}, b"Bad Gateway"), "proxy"),
        (answer(418, {"code": "teapot", "message": "No."}), "docs/errors.md"),
    ],
)
def test_advice_about_responses_that_are_not_larders(refused: Answer, words: str) -> None:
    assert words in about(refused)
    assert summary(refused).startswith(str(refused.status))


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("AccessDenied", "policy"),
        ("SignatureDoesNotMatch", "proxy"),
        ("RequestTimeTooSkewed", "clock"),
        ("SlowDown", "S3"),
    ],
)
def test_advice_about_errors_of_s3(code: str, words: str) -> None:
    refused = Answer(403, {}, f"<Error><Code>{code}</Code></Error>".encode())
    assert words in about_storage(refused)


@pytest.mark.parametrize(
    ("refused", "words"),
    [
        (answer(404, {"error": {"code": "no_such_address"}}), "`larder edge status`"),
        (answer(404, {"error": {"code": "address_expired"}}), "clock"),
        (Answer(403, {}, b"<Error><Code>AccessDenied</Code></Error>"), "docs/edge.md"),
        (Answer(502, {}, b"<html>"), "`larder edge disable`"),
    ],
)
def test_advice_about_errors_of_the_edge(refused: Answer, words: str) -> None:
    assert words in about_storage(refused, by_edge=True)


def test_advice_without_a_response() -> None:
    with pytest.raises(Unreachable) as refused:
        exchange("GET", unused_url())
    assert "nothing listens" in about_silence(refused.value)
    with pytest.raises(Unreachable) as unknown:
        exchange("GET", "http://no-such-host.invalid/")
    assert "the host does not exist" in about_silence(unknown.value)
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(Unreachable) as slow:
            exchange("GET", url, timeout_s=0.1)
    assert "in time" in about_silence(slow.value)
    untrusted = Unreachable(str(ssl.SSLCertVerificationError(1, "CERTIFICATE_VERIFY_FAILED")))
    assert "SSL_CERT_FILE" in about_silence(untrusted)
    assert "network" in about_silence(Unreachable("unknown reason"))


# ----------------------------------------------------------------------------------- requests at once


@contextmanager
def api_with_functions(number: int) -> Iterator[str]:
    """An API whose functions take a moment, in an account that runs so many at once. Other requests get 503."""
    free = BoundedSemaphore(number)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            runs = free.acquire(blocking=False)
            time.sleep(0.5)
            body = b'{"status": "enabled"}' if runs else b'{"message": "Service Unavailable"}'
            if runs:
                free.release()
            self.send_response(200 if runs else 503)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Keep the output of the test clean."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_requests_at_once_find_an_account_that_runs_too_few_functions() -> None:
    with api_with_functions(10) as url:
        site = Site(url=url, key=KEY, team=None, large_bytes=1)
        assert requests_at_once_are_answered(site) == ""
    with api_with_functions(3) as url:
        site = Site(url=url, key=KEY, team=None, large_bytes=1)
        with pytest.raises(Failed, match="of 10: 503") as failed:
            requests_at_once_are_answered(site)
    assert "too many functions at once" in failed.value.advice


def test_with_a_stack_the_account_is_asked_how_many_functions_it_runs(
    fake_aws: FakeAws, own_environment: pytest.MonkeyPatch
) -> None:
    own_environment.setenv("AWS_ENDPOINT_URL_LAMBDA", fake_aws.url)
    aws.reset()
    fake_aws.body = b'{"AccountLimit": {"ConcurrentExecutions": 1000}}'
    assert account_runs_enough_functions("eu-central-1") == "1000"
    fake_aws.body = b'{"AccountLimit": {"ConcurrentExecutions": 10}}'
    with pytest.raises(Failed, match="at most 10 functions") as failed:
        account_runs_enough_functions("eu-central-1")
    assert "request-service-quota-increase" in failed.value.advice
    aws.reset()


# ------------------------------------------------------------------------------------- the log lookup


@pytest.fixture
def logs(aws_in_memory: None, fake_aws: FakeAws, own_environment: pytest.MonkeyPatch) -> Iterator[None]:
    """The log group of the cache's functions, in memory, with a stream for each of two."""
    own_environment.setenv("AWS_ENDPOINT_URL_CLOUDFORMATION", fake_aws.url)
    aws.reset()
    fake_aws.physical_ids["ArtifactsLogGroup"] = "artifacts"
    aws.cloudwatch_logs().create_log_group(logGroupName="artifacts")
    for function in ("GetStatus", "Preflight"):
        aws.cloudwatch_logs().create_log_stream(logGroupName="artifacts", logStreamName=function)
    yield
    aws.reset()


def write_line(function: str, **entry: str) -> None:
    line = {"message": "answered", **entry}
    aws.cloudwatch_logs().put_log_events(
        logGroupName="artifacts",
        logStreamName=function,
        logEvents=[{"timestamp": int(time.time() * 1000), "message": json.dumps(line)}],
    )


def site_with_requests(**request_ids: str) -> Site:
    return Site(url="https://cache.example.com", key=KEY, team=None, large_bytes=1, request_ids=request_ids)


def test_logged_requests_are_found(logs: None) -> None:
    began = clock.now()
    write_line("GetStatus", request_id="one=", key_id="k", owner="team_1")
    write_line("Preflight", request_id="two=", key_id="k", owner="team_1")
    output = requests_are_logged(site_with_requests(GetStatus="one=", Preflight="two="), "larder", began)
    assert output == "2 requests found"


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ({"request_id": "one=", "key_id": "k", "owner": "o", "token": KEY}, "the key itself"),
        ({"request_id": "one="}, "has no key_id"),
        ({"message": "START one="}, "has no key_id"),
    ],
)
def test_a_log_line_with_the_key_or_without_its_id_fails(logs: None, entry: dict[str, str], found: str) -> None:
    began = clock.now()
    write_line("GetStatus", **entry)
    with pytest.raises(Failed, match=found):
        requests_are_logged(site_with_requests(GetStatus="one="), "larder", began)


def test_a_log_without_the_request_fails(logs: None) -> None:
    with pytest.raises(Failed, match="the log of GetStatus does not contain"):
        requests_are_logged(site_with_requests(GetStatus="one="), "larder", clock.now(), timeout_s=0)
    with pytest.raises(Failed, match="no apigw-requestid"):
        requests_are_logged(site_with_requests(GetStatus=""), "larder", clock.now())
