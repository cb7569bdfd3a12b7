"""A small service for tests, and a local cloud that runs it: tests of the gateway, workers, S3 and tables need none of
Larder's handlers.
"""

import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import boto3
import httpx
from botocore.config import Config

ROOT = Path(__file__).resolve().parents[2]
TABLE = "larder-things-table"
BUCKET = "larder-things-bucket"
START_SECONDS = 60
STOP_SECONDS = 60

TEMPLATE = """
Parameters:
  Greeting: {Type: String, Default: hello}
Globals:
  Function:
    CodeUri: layers/things/placeholder
    Layers: [!Ref ThingsLayer]
    Timeout: 5
    Environment: {Variables: {LARDER_GREETING: !Ref Greeting}}
Resources:
  Echo:
    Type: AWS::Serverless::Function
    Properties:
      Handler: things.echo.handler
      Events:
        Any: {Type: HttpApi, Properties: {Method: ANY, Path: "/echo/{name}"}}
        Upload: {Type: HttpApi, Properties: {Method: PUT, Path: "/v8/artifacts/{hash}"}}
  Misbehave:
    Type: AWS::Serverless::Function
    Properties:
      Handler: things.misbehave.handler
      Events:
        Get: {Type: HttpApi, Properties: {Method: GET, Path: "/misbehave/{how}"}}
  Respond:
    Type: AWS::Serverless::Function
    Properties:
      Handler: things.respond.handler
      Events:
        Post: {Type: HttpApi, Properties: {Method: POST, Path: /respond}}
        Head: {Type: HttpApi, Properties: {Method: HEAD, Path: /respond}}
  Unknown:
    Type: AWS::Serverless::Function
    Properties:
      Handler: things.unknown.handler
      Events:
        Default: {Type: HttpApi, Properties: {Method: ANY, Path: $default}}
  Arrived:
    Type: AWS::Serverless::Function
    Properties:
      Handler: things.arrived.handler
      Events:
        Object:
          Type: EventBridgeRule
          Properties:
            Pattern:
              source: [aws.s3]
              detail-type: [Object Created]
              detail: {bucket: {name: [!Ref ThingsBucket]}, object: {key: [{prefix: artifacts/}]}}
  ThingsLayer:
    Type: AWS::Serverless::LayerVersion
    Properties: {ContentUri: layers/things}
  ThingsTable:
    Type: AWS::DynamoDB::Table
    Properties:
      BillingMode: PAY_PER_REQUEST
      TimeToLiveSpecification: {AttributeName: expires_at, Enabled: true}
      AttributeDefinitions: [{AttributeName: id, AttributeType: S}]
      KeySchema: [{AttributeName: id, KeyType: HASH}]
  ThingsBucket:
    Type: AWS::S3::Bucket
"""

HANDLERS = {
    "echo": """
import os
def handler(event, context):
    import json
    seen = {"event": event, "greeting": os.environ["LARDER_GREETING"], "mood": os.environ.get("LARDER_MOOD"),
            "function": context.function_name,
            "request_id": context.aws_request_id, "left_ms": context.get_remaining_time_in_millis(),
            "pid": os.getpid(), "aws_profile": os.environ.get("AWS_PROFILE")}
    if event.get("body") and len(event["body"]) > 100_000:
        event["body"] = len(event["body"])
    return {"statusCode": 200, "headers": {"content-type": "application/json"}, "body": json.dumps(seen)}
""",
    "misbehave": """
import json, os, pathlib, time
def handler(event, context):
    how = event["pathParameters"]["how"]
    if how == "raise":
        raise ValueError("a reason")
    if how == "exit":
        os._exit(3)
    if how == "sleep":
        pathlib.Path(__file__).with_name("sleeps").touch()
        time.sleep(30)
    if how == "log":
        print(json.dumps({"level": "ERROR", "message": "shown on the screen"}))
    if how == "large":
        return {"statusCode": 200, "body": "x" * 6_300_000}
    if how == "nonsense":
        return {"statusCode": "many"}
    return {"statusCode": 204}
""",
    "respond": """
import json
def handler(event, context):
    if event["requestContext"]["http"]["method"] == "HEAD":
        return {"statusCode": 200, "headers": {"content-length": "1234", "x-artifact-tag": "t"}}
    return json.loads(event["body"])
""",
    "unknown": """
def handler(event, context):
    return {"statusCode": 404, "headers": {"x-route": event["routeKey"]}, "body": event["requestContext"]["routeKey"]}
""",
    "arrived": """
import json, os, pathlib
def handler(event, context):
    seen = pathlib.Path(__file__).with_name("seen.jsonl")
    with seen.open("a") as file:
        file.write(json.dumps(event) + "\\n")
    if "fails-once" in event["detail"]["object"]["key"]:
        marker = pathlib.Path(__file__).with_name("failed-once")
        if not marker.exists():
            marker.touch()
            raise RuntimeError("not yet")
""",
}


def write_service(folder: Path) -> Path:
    """Write the service below `folder`; returns its template."""
    package = folder / "functions" / "things"
    package.mkdir(parents=True)
    for name, source in HANDLERS.items():
        (package / f"{name}.py").write_text(source)
    template = folder / "template.yaml"
    template.write_text(TEMPLATE)
    return template


class StubCloud:
    """`python -m local serve` on free ports with the stub service. Its output is in `screen`."""

    def __init__(self, folder: Path, *, template: Path | None = None, workers: int = 1, **variables: str) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.template = template or write_service(folder)
        self.screen = ""
        self._variables = {"FUNCTION_WORKERS": str(workers), **variables}
        self.start()

    def start(self) -> None:
        environ = {
            name: value for name, value in os.environ.items() if not name.startswith(("LARDER_", "AWS_", "TURBO_"))
        }
        environ |= {"PORT": "0", "DATA": str(self.data), "TEMPLATE": str(self.template)}
        (self.data / "cloud.json").unlink(missing_ok=True)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "local", "serve"],
            cwd=ROOT,
            env=environ | self._variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read_screen)
        self._reader.start()
        deadline = time.monotonic() + START_SECONDS
        while not (self.data / "cloud.json").exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"the local cloud did not start: {self.screen}")
            time.sleep(0.05)
        self.description: dict[str, Any] = json.loads((self.data / "cloud.json").read_text())
        self.url: str = self.description["api_url"]

    def stop(self, with_signal: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(with_signal)
        return self._finish()

    def kill(self) -> int:
        """kill -9 of only the parent."""
        self.process.kill()
        return self._finish()

    def children(self) -> list[int]:
        """All processes of the cloud but the first, parents before their children."""
        listing = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
        parents = {int(pid): int(parent) for pid, parent in map(str.split, listing.splitlines())}
        found = [self.process.pid]
        for known in found:
            found.extend(pid for pid, parent in parents.items() if parent == known)
        return found[1:]

    def child(self, module: str) -> int:
        """The first process of one module."""
        for pid in self.children():
            command = subprocess.run(["ps", "-o", "args=", "-p", str(pid)], capture_output=True, text=True).stdout
            if module in command:
                return pid
        raise LookupError(module)

    def whole_screen(self) -> str:
        """The screen with the lines about everything that was answered before. They are in order."""
        last = f"/{secrets.token_hex(8)}"
        httpx.get(self.url + last, trust_env=False, timeout=60)
        assert eventually(lambda: last in self.screen)
        return self.screen

    def dynamodb(self) -> Any:
        return self._client("dynamodb")

    def s3(self) -> Any:
        return self._client("s3")

    def lambda_(self) -> Any:
        return self._client("lambda")

    def arrived(self) -> list[dict[str, Any]]:
        """The events that the function for objects has received."""
        seen = self.folder / "functions" / "things" / "seen.jsonl"
        lines = seen.read_text().splitlines() if seen.exists() else []
        return [json.loads(line) for line in lines]

    def _client(self, service: str) -> Any:
        environment = self.description["environment"]
        return boto3.client(
            service,  # type: ignore[call-overload]  # a name, not a literal
            endpoint_url=environment[f"AWS_ENDPOINT_URL_{service.upper()}"],
            region_name=environment["AWS_REGION"],
            aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
            config=Config(
                signature_version="s3v4" if service == "s3" else "v4",
                s3={"addressing_style": "path"},
                retries={"total_max_attempts": 1},
                read_timeout=20,
            ),
        )

    def _finish(self) -> int:
        status = self.process.wait(STOP_SECONDS)
        self._reader.join()
        return status

    def _read_screen(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as output:
            for line in output:
                self.screen += line


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def eventually(condition: Any, seconds: float = 30.0) -> bool:
    """Wait until `condition()` is true, up to `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
