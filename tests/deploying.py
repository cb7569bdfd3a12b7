"""An empty account in an emulator, and `make deploy` of a small template into it, with the real `sam deploy`."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3

from local.template import REGION
from tests.emulator.aws_behaviour import FAIL_AT
from tests.emulator.process import KEYS, ROOT, Emulator, emulator

_COMMAND = ("-m", "tools.deploy", "--env", "prod")
ELSEWHERE = "eu-central-1"
TEMPLATE = """
AWSTemplateFormatVersion: "2010-09-09"
Transform: AWS::Serverless-2016-10-31
Parameters:
  ProtectData: {Type: String, Default: "true", AllowedValues: ["true", "false"]}
  Words: {Type: String, Default: "", AllowedPattern: "^[^!]*$"}
  Level: {Type: String, Default: INFO}
  ExistingBucket: {Type: String, Default: ""}
  Edge: {Type: String, Default: "false"}
  # Options that the check of this bucket reads.
  KmsKeyArn: {Type: String, Default: ""}
  RetentionDays: {Type: Number, Default: 30}
  Alarms: {Type: String, Default: "true"}
  AlarmTrafficGigabytes: {Type: Number, Default: 0}
Conditions:
  HasEdge: !Equals [!Ref Edge, "true"]
Resources:
  Table:
    Type: AWS::DynamoDB::Table
    Properties:
      DeletionProtectionEnabled: !Ref ProtectData
      BillingMode: PAY_PER_REQUEST
      AttributeDefinitions: [{AttributeName: id, AttributeType: S}]
      KeySchema: [{AttributeName: id, KeyType: HASH}]
  WordsNote: {Type: AWS::SSM::Parameter, Properties: {Type: String, Value: !Sub "<${Words}>"}}
  LevelNote: {Type: AWS::SSM::Parameter, DependsOn: Table, Properties: {Type: String, Value: !Ref Level}}
  EdgeNote: {Type: AWS::SSM::Parameter, Condition: HasEdge, Properties: {Type: String, Value: edge}}
Outputs:
  ApiUrl: {Value: "https://api.example"}
  Words: {Value: !Ref WordsNote}
  Level: {Value: !Ref LevelNote}
  Table: {Value: !Ref Table}
  EdgeDistribution: {Condition: HasEdge, Value: !Ref EdgeNote}
"""
SETTINGS = """
version = 0.1
[prod.deploy.parameters]
stack_name = "larder-prod"
capabilities = "CAPABILITY_IAM"
resolve_s3 = true
confirm_changeset = true
fail_on_empty_changeset = false
parameter_overrides = %s
"""


def commands_in(message: str) -> list[list[str]]:
    """The commands in a message of `make deploy` to the owner of a bucket."""
    lines = (line.strip() for line in message.splitlines())
    return [shlex.split(line) for line in lines if line.startswith("aws s3api ")]


def obey(s3: Any, message: str) -> None:
    """Run these commands, as the AWS command line would."""
    for _, _, operation, *options in commands_in(message):
        arguments: dict[str, Any] = {}
        for name, value in zip(options[::2], options[1::2], strict=True):
            parameter = "".join(word.capitalize() for word in name.removeprefix("--").split("-"))
            is_json = value.startswith("{") and parameter != "Policy"
            arguments[parameter] = json.loads(value) if is_json else value
        getattr(s3, operation.replace("-", "_"))(**arguments)


@dataclass(frozen=True)
class Done:
    status: int
    text: str


@dataclass(frozen=True)
class Account:
    """An empty account in the emulator, and a folder to deploy from."""

    emulator: Emulator
    folder: Path
    failing: Path

    def configure(self, overrides: str) -> None:
        (self.folder / "samconfig.toml").write_text(SETTINGS % overrides)

    def deploy(
        self, *arguments: str, environ: Mapping[str, str] | None = None, answers: str | None = None
    ) -> Done:
        """Run the command with the keys and nothing else, or with these variables."""
        unattended = [] if answers is not None else ["--no-confirm-changeset"]
        done = subprocess.run(
            [sys.executable, *_COMMAND, "--built", self.folder, *unattended, *arguments],
            cwd=ROOT,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.folder),
                "SAM_CLI_TELEMETRY": "0",
                "SAM_CLI_POLL_DELAY": "0.2",
                "AWS_ACCESS_KEY_ID": KEYS[0],
                "AWS_SECRET_ACCESS_KEY": KEYS[1],
                "AWS_ENDPOINT_URL": self.emulator.url,
                "AWS_EC2_METADATA_DISABLED": "true",
                "NO_PROXY": "*",
                **({"AWS_REGION": REGION} if environ is None else environ),
            },
            input=answers,
            stdin=None if answers is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        return Done(done.returncode, done.stdout)

    def client(self, service: str, region: str = REGION) -> Any:
        session = boto3.session.Session(*KEYS, region_name=region)
        return session.client(service, endpoint_url=self.emulator.url)  # type: ignore[call-overload]

    def stack(self, region: str = REGION) -> dict[str, Any] | None:
        cloudformation = self.client("cloudformation", region)
        found = [
            one
            for one in cloudformation.describe_stacks()["Stacks"]
            if one["StackName"] == "larder-prod" and one["StackStatus"] != "DELETE_COMPLETE"
        ]
        return found[0] if found else None

    def output(self, name: str) -> str:
        stack = self.stack()
        assert stack is not None
        return {one["OutputKey"]: one["OutputValue"] for one in stack["Outputs"]}[name]

    def note(self, name: str) -> str:
        note = self.client("ssm").get_parameter(Name=self.output(name))["Parameter"]
        return str(note["Value"])

    def is_protected(self) -> bool:
        table = self.client("dynamodb").describe_table(TableName=self.output("Table"))["Table"]
        return str(table["DeletionProtectionEnabled"]).lower() == "true"


@contextmanager
def empty_account(folder: Path, *, functions_at_once: int = 1000) -> Iterator[Account]:
    """An account whose prod environment protects its data."""
    failing = folder / "fail-at"
    limits = {"LAMBDA_ACCOUNT_CONCURRENCY": str(functions_at_once)}
    with emulator(folder / "emulator", {FAIL_AT: str(failing), **limits}) as running:
        package = folder / "package"
        package.mkdir()
        (package / "template.yaml").write_text(TEMPLATE)
        account = Account(running, package, failing)
        account.configure('"ProtectData=true"')
        yield account
