"""`serve --runtime`: the output of `make build` under AWS's own runtime interface client."""

import asyncio
import base64
import hashlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from local.cloudformation import read_template
from local.lambda_runtime.built import BuildError, open_build
from local.lambda_runtime.http import Listener, Request, Response
from tests.local.stub_service import BUCKET, ROOT, StubCloud, alive, eventually, write_service

pytestmark = pytest.mark.build

OCTETS = {"content-type": "application/octet-stream"}

DESCRIBE = """
import json, os, sys, time
def handler(event, context):
    query = event.get("queryStringParameters") or {}
    time.sleep(float(query.get("nap", 0)))
    held = b"x" * (int(query.get("hold_mb", 0)) << 20)
    if "raise" in query:
        raise ValueError("a reason")
    if "spawn" in query:
        os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "30")
        time.sleep(30)
    seen = {"pid": os.getpid(), "version": sys.version_info[:2], "path": sys.path, "folder": os.getcwd(),
            "client": sys.modules["awslambdaric"].__file__, "environ": dict(os.environ),
            "arn": context.invoked_function_arn, "left_ms": context.get_remaining_time_in_millis()}
    return {"statusCode": 200, "body": json.dumps(seen)}
"""
BROKEN = """
def settings():
    raise ValueError("no settings")
settings()
"""
ADDED = {
    "Describe": ("describe", DESCRIBE),
    "Broken": ("broken", BROKEN),
    "Lacking": ("lacking", "import nowhere"),
    "Quitting": ("quitting", "import os; os._exit(7)"),
    "Hoarding": ("hoarding", "held = b'x' * (200 << 20)"),
}

SET_BY_LAMBDA = {
    "AWS_ACCESS_KEY_ID", "AWS_DEFAULT_REGION", "AWS_EXECUTION_ENV", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE",
    "AWS_LAMBDA_FUNCTION_NAME", "AWS_LAMBDA_FUNCTION_VERSION", "AWS_LAMBDA_INITIALIZATION_TYPE",
    "AWS_LAMBDA_LOG_FORMAT", "AWS_LAMBDA_LOG_GROUP_NAME", "AWS_LAMBDA_LOG_LEVEL", "AWS_LAMBDA_LOG_STREAM_NAME",
    "AWS_LAMBDA_RUNTIME_API", "AWS_REGION", "AWS_SECRET_ACCESS_KEY", "LAMBDA_RUNTIME_DIR", "LAMBDA_TASK_ROOT",
    "LANG", "PATH", "PYTHONPATH", "TZ", "_HANDLER", "_X_AMZN_TRACE_ID",
}  # fmt: skip
TO_THIS_CLOUD = {
    "AWS_CONFIG_FILE", "AWS_EC2_METADATA_DISABLED", "AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_LAMBDA",
    "AWS_ENDPOINT_URL_S3", "AWS_SHARED_CREDENTIALS_FILE", "LARDER_EDGE_URL", "LARDER_EMAIL_SENDER",
    "LARDER_OPERATOR_EMAILS", "LARDER_SIGN_UP_POLICY", "LARDER_SIGNING_SECRET", "NO_PROXY", "no_proxy",
}  # fmt: skip
"""Variables that differ from the cloud: the services' endpoints, and not to look for others."""


def write_built_service(folder: Path) -> Path:
    """The stub service with more functions, and SAM's build of it. Returns its template."""
    path = write_service(folder)
    document = read_template(path)
    for name, (module, source) in ADDED.items():
        (folder / "functions" / "things" / f"{module}.py").write_text(source)
        route = {"Type": "HttpApi", "Properties": {"Method": "GET", "Path": f"/{module}"}}
        document["Resources"][name] = {
            "Type": "AWS::Serverless::Function",
            "Properties": {"Handler": f"things.{module}.handler", "Events": {"Get": route}},
        }
    document["Globals"]["Function"]["LoggingConfig"] = {"LogFormat": "JSON"}
    for name in ("Describe", "Broken"):
        own = {"Variables": {"LARDER_MOOD": "fine"}}
        document["Resources"][name]["Properties"]["Environment"] = own
    path.write_text(yaml.safe_dump(document))
    build = folder / ".aws-sam" / "build"
    for name, resource in document["Resources"].items():
        if resource["Type"] == "AWS::Serverless::Function":
            (build / name).mkdir(parents=True)
            resource["Properties"]["CodeUri"] = name
    shutil.copytree(folder / "functions", build / "ThingsLayer" / "python")
    document["Resources"]["ThingsLayer"]["Properties"]["ContentUri"] = "ThingsLayer"
    (build / "template.yaml").write_text(yaml.safe_dump(document))
    return path


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StubCloud]:
    folder = tmp_path_factory.mktemp("runtime")
    cloud = StubCloud(folder, template=write_built_service(folder), RUNTIME="1")
    yield cloud
    cloud.stop()


@pytest.fixture
def client(cloud: StubCloud) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=cloud.url, trust_env=False, timeout=40) as client:
        yield client


def describe(client: httpx.Client, **query: str) -> dict[str, Any]:
    reply = client.get("/describe", params=query)
    assert reply.status_code == 200, reply.text
    return dict(reply.json())


def on_screen(cloud: StubCloud, text: str) -> bool:
    return eventually(lambda: text in cloud.screen)


def failure(cloud: StubCloud, reply: httpx.Response) -> str:
    """The line on the screen about a failed request."""
    assert (reply.status_code, reply.json()) == (500, {"message": "Internal Server Error"})
    mark = f"(request {reply.headers['apigw-requestid']})"
    assert on_screen(cloud, mark)
    return next(line for line in cloud.screen.splitlines() if mark in line)


def test_the_first_call_starts_an_environment_and_the_next_finds_it_warm(
    client: httpx.Client, cloud: StubCloud
) -> None:
    first = describe(client)
    started = cloud.whole_screen().count(" ms  describe\n")
    assert started
    assert describe(client)["pid"] == first["pid"]
    assert cloud.whole_screen().count(" ms  describe\n") == started


def test_an_environment_has_lambdas_variables(client: httpx.Client, cloud: StubCloud) -> None:
    seen = describe(client)
    built = cloud.folder / ".aws-sam" / "build" / "Describe"
    assert seen["version"] == [3, 13]
    assert seen["folder"] == seen["path"][0] == seen["environ"]["LAMBDA_TASK_ROOT"] == str(built)
    assert "/.tools/runtime/" in seen["client"]
    assert not [path for path in seen["path"] if "site-packages" in path or path == str(ROOT)]
    environ = seen["environ"]
    assert environ["_HANDLER"] == "things.describe.handler"
    assert environ["AWS_LAMBDA_FUNCTION_NAME"] == "Describe"
    assert environ["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"] == "128"
    assert environ["AWS_LAMBDA_FUNCTION_VERSION"] == "$LATEST"
    assert environ["AWS_LAMBDA_LOG_FORMAT"] == "JSON"
    assert environ["PATH"] == "/usr/local/bin:/usr/bin:/bin"
    assert environ["AWS_EXECUTION_ENV"] == "AWS_Lambda_python3.13"
    assert environ["AWS_LAMBDA_RUNTIME_API"].startswith("127.0.0.1:")
    assert environ["LARDER_GREETING"] == "hello"
    assert environ["_X_AMZN_TRACE_ID"].startswith("Root=1-")
    # Python sets LC_CTYPE itself if the machine lacks the locale.
    assert environ.keys() - {"LC_CTYPE"} == (SET_BY_LAMBDA | TO_THIS_CLOUD | {"LARDER_GREETING", "LARDER_MOOD"})
    assert seen["arn"].endswith(":function:Describe")
    assert 1000 < seen["left_ms"] <= 5000


def test_a_function_gets_only_its_own_variables(client: httpx.Client) -> None:
    assert "LARDER_MOOD" in describe(client)["environ"]
    assert client.get("/echo/a").json()["mood"] is None


def test_every_function_has_its_own_environments(client: httpx.Client) -> None:
    assert client.get("/echo/a").json()["pid"] != describe(client)["pid"]


def test_parallel_events_get_up_to_four_environments(client: httpx.Client) -> None:
    with ThreadPoolExecutor(8) as threads:
        seen = list(threads.map(lambda _: describe(client, nap="0.3")["pid"], range(12)))
    assert 2 <= len(set(seen)) <= 4


def test_passes_binary_bodies_both_ways(client: httpx.Client) -> None:
    body = bytes(range(256))
    event = client.put("/echo/a", content=body, headers=OCTETS).json()["event"]
    assert event["isBase64Encoded"] is True
    assert base64.b64decode(event["body"]) == body
    reply = {"statusCode": 200, "isBase64Encoded": True, "body": base64.b64encode(body).decode()}
    back = client.post("/respond", json=reply)
    assert (back.status_code, back.content) == (200, body)


def test_accepts_and_returns_the_largest_payload(client: httpx.Client) -> None:
    assert client.put("/echo/a", content=bytes(4_700_000), headers=OCTETS).status_code == 200
    assert len(client.post("/respond", json={"statusCode": 200, "body": "x" * 6_200_000}).text) == (6_200_000)


def test_an_error_of_the_handler_keeps_its_environment(client: httpx.Client, cloud: StubCloud) -> None:
    before = cloud.whole_screen().count(" ms  misbehave\n")
    for _ in range(3):
        assert "ValueError: a reason" in failure(cloud, client.get("/misbehave/raise"))
    assert cloud.whole_screen().count(" ms  misbehave\n") <= before + 1
    log = cloud.data / "logs" / "functions.log"
    assert eventually(lambda: '"stackTrace"' in log.read_text())


@pytest.mark.parametrize(
    ("how", "expected"),
    [("sleep", "took longer than its 5 s"), ("exit", "ended its process (exit status 3)"), ("large", "at most 6 MB")],
)
def test_a_late_crashed_or_too_large_reply_ends_the_environment_and_the_next_call_works(
    client: httpx.Client, cloud: StubCloud, how: str, expected: str
) -> None:
    assert client.get("/misbehave/well").status_code == 204
    started = cloud.whole_screen().count(" ms  misbehave\n")
    assert expected in failure(cloud, client.get(f"/misbehave/{how}"))
    assert client.get("/misbehave/well").status_code == 204
    assert eventually(lambda: cloud.screen.count(" ms  misbehave\n") == started + 1)


def test_a_late_function_is_killed_with_its_children(client: httpx.Client, cloud: StubCloud) -> None:
    assert "took longer than its 5 s" in failure(cloud, client.get("/describe?spawn=1"))
    describe(client)


@pytest.mark.parametrize("then", [{}, {"raise": "1"}], ids=["replies", "raises"])
def test_a_function_over_its_memory_limit_is_killed_and_the_next_call_works(
    client: httpx.Client, cloud: StubCloud, then: dict[str, str]
) -> None:
    before = describe(client, hold_mb="50")["pid"]
    expected = failure(cloud, client.get("/describe", params={"hold_mb": "200", **then}))
    assert "used more than its 128 MB of memory" in expected
    assert not alive(before)
    assert describe(client)["pid"] != before


def test_a_module_that_fails_is_told_with_the_end_of_its_traceback(client: httpx.Client, cloud: StubCloud) -> None:
    expected = failure(cloud, client.get("/broken"))
    assert "Broken failed: could not be initialized: ValueError: no settings" in expected
    # On the lines after the first.
    assert on_screen(cloud, 'things/broken.py", line 3, in settings\n    raise ValueError("no settings")')


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/lacking", "Unable to import module 'things.lacking': No module named 'nowhere'"),
        ("/quitting", "ended its process (exit status 7)"),
        ("/hoarding", "used more than its 128 MB of memory"),
    ],
)
def test_an_environment_that_cannot_be_initialized_is_told(
    client: httpx.Client, cloud: StubCloud, path: str, expected: str
) -> None:
    assert expected in failure(cloud, client.get(path))


def test_an_error_that_a_function_logs_is_shown_on_the_screen(client: httpx.Client, cloud: StubCloud) -> None:
    reply = client.get("/misbehave/log")
    assert reply.status_code == 204
    expected = f"Misbehave: shown on the screen (request {reply.headers['apigw-requestid']})"
    assert on_screen(cloud, expected)


def test_delivers_the_events_of_objects(cloud: StubCloud) -> None:
    cloud.s3().put_object(Bucket=BUCKET, Key="artifacts/one", Body=b"1")
    seen = cloud.folder / ".aws-sam" / "build" / "ThingsLayer" / "python" / "things" / "seen.jsonl"
    assert eventually(lambda: seen.exists() and seen.read_text().endswith("\n"))
    assert json.loads(seen.read_text())["detail"]["object"]["key"] == "artifacts/one"


def test_runs_asynchronous_invocations(cloud: StubCloud) -> None:
    event = {"detail": {"object": {"key": "handed over"}}}
    cloud.lambda_().invoke(FunctionName="larder-arrived", InvocationType="Event", Payload=json.dumps(event))
    seen = cloud.folder / ".aws-sam" / "build" / "ThingsLayer" / "python" / "things" / "seen.jsonl"
    assert eventually(lambda: seen.exists() and json.dumps(event) in seen.read_text())


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_no_environment_outlives_the_local_cloud(tmp_path: Path, how: str) -> None:
    cloud = StubCloud(tmp_path, template=write_built_service(tmp_path), RUNTIME="1")
    with httpx.Client(base_url=cloud.url, trust_env=False, timeout=40) as client:
        pid = describe(client)["pid"]
    if how == "stop":
        assert cloud.stop(signal.SIGTERM) == 0
    else:
        cloud.kill()
    assert eventually(lambda: not alive(pid))


def test_without_a_build_it_says_what_to_do(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "local", "serve", "--runtime", "--port", "0"],
        cwd=ROOT,
        env={**os.environ, "TEMPLATE": str(write_service(tmp_path)), "DATA": str(tmp_path / "data")},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert result.returncode == 1
    assert result.stderr == "larder: nothing is built: run `make build`, then this again\n"
    assert not (tmp_path / "data").exists()


def test_without_the_runtimes_python_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    template = write_built_service(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BuildError, match=r"CPython 3\.13, the version of the Lambda runtime"):
        open_build(template)


def test_a_function_that_is_not_built_is_told(tmp_path: Path) -> None:
    template = write_built_service(tmp_path)
    shutil.rmtree(tmp_path / ".aws-sam" / "build" / "Echo")
    with pytest.raises(BuildError, match="Echo is not built: run `make build`"):
        open_build(template)


@pytest.mark.parametrize("changed", ["functions/things/echo.py", "template.yaml"])
def test_says_when_the_source_is_newer_than_the_build(tmp_path: Path, changed: str) -> None:
    template = write_built_service(tmp_path)
    assert not any("source has changed" in remark for remark in open_build(template).remarks)
    text = (tmp_path / changed).read_text()
    (tmp_path / changed).write_text(text.replace("hello", "good day").replace("import", "import "))
    assert any("source has changed" in remark for remark in open_build(template).remarks)


def test_a_request_over_the_limit_is_measured_but_not_kept() -> None:
    received: list[Request] = []

    async def answer(request: Request) -> Response:
        received.append(request)
        return Response(200, b"", [])

    async def post_twice() -> None:
        listener = Listener(answer, max_body_bytes=1000)
        address = await listener.open()
        async with httpx.AsyncClient(trust_env=False) as client:
            await client.post(f"http://{address}/a", content=bytes(1000))
            await client.post(f"http://{address}/b", content=bytes(1_000_000))
        listener.close()

    asyncio.run(post_twice())
    assert [(one.path, len(one.body), one.size) for one in received] == [("/a", 1000, 1000), ("/b", 0, 1_000_000)]


def test_the_real_build_serves_artifacts(tmp_path: Path) -> None:
    # Without the edge, the function itself returns the largest artifact.
    cloud = StubCloud(tmp_path, template=ROOT / "template.yaml", RUNTIME="1", EDGE="0")
    try:
        lines = (cloud.data / "turbo.env").read_text().splitlines()
        turbo = dict(line.split("=", 1) for line in lines if line.startswith("TURBO_"))
        with httpx.Client(
            base_url=f"{cloud.url}/v8/artifacts",
            params={"slug": turbo["TURBO_TEAM"]},
            headers={"authorization": f"Bearer {turbo['TURBO_TOKEN']}"},
            trust_env=False,
            timeout=40,
        ) as client:
            body, hash = os.urandom(5000), "0123456789abcdef"
            assert client.get("/status").json() == {"status": "enabled"}
            assert client.get(f"/{hash}").status_code == 404
            assert client.put(f"/{hash}", content=body, headers=OCTETS).status_code == 202
            assert client.get(f"/{hash}").content == body
            assert client.head(f"/{hash}").headers["content-length"] == "5000"
            # The largest artifact for a function, with the memory in the template.
            large, tag = os.urandom(4_700_000), {"x-artifact-tag": f"{'a' * 43}="}
            stored = client.put("/large", content=large, headers={**OCTETS, **tag})
            assert stored.status_code == 202, stored.text
            fetched = client.get("/large", follow_redirects=False)
            assert (fetched.status_code, len(fetched.content)) == (200, len(large))
            assert hashlib.sha256(fetched.content).digest() == hashlib.sha256(large).digest()
            event = {"sessionId": "b1946ac9-2ab1-4f2c-9a3b-0c5e8f7d6a10", "source": "REMOTE"}
            hit = {**event, "event": "HIT", "hash": hash, "duration": 100}
            assert client.post("/events", json=[hit]).status_code == 200
            # The event of a direct upload reaches its function.
            offer = client.options("/direct", headers={"access-control-request-method": "PUT"})
            assert httpx.put(offer.headers["location"], content=body, trust_env=False).status_code == 200
        assert on_screen(cloud, " ms  commit_upload\n")
        assert "under AWS's runtime interface client" in cloud.screen
        for name in ("get_status", "fetch_artifact", "put_artifact", "artifact_exists"):
            assert f" ms  {name}\n" in cloud.screen
        assert " ! " not in cloud.screen
        log = cloud.data / "logs" / "functions.log"
        assert stat.S_IMODE(log.stat().st_mode) == 0o600
        assert eventually(lambda: '"message":"answered"' in log.read_text())
    finally:
        cloud.stop()
