"""An empty account in an emulator, and a small release to deploy into it."""

import hashlib
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import boto3

from larder_cli.deploy.options import as_toml
from larder_cli.deploy.release import DESCRIPTION, NO_BUDGETS, PLAIN
from local.cloudformation import read_template
from local.template import REGION
from tests.emulator.aws_behaviour import FAIL_AT
from tests.emulator.process import KEYS, ROOT, Emulator, emulator

ELSEWHERE = "eu-central-1"
TEMPLATE = """
AWSTemplateFormatVersion: "2010-09-09"
Description: "Larder: a small release."
Parameters:
  ProtectData: {Type: String, Default: "true", AllowedValues: ["true", "false"]}
  Words: {Type: String, Default: "", AllowedPattern: "^[^!]*$"}
  Level: {Type: String, Default: INFO}
  ExistingBucket: {Type: String, Default: ""}
  Edge: {Type: String, Default: "false"}
  # Options that the check of this bucket reads.
  KmsKeyArn: {Type: String, Default: ""}
  RetentionDays: {Type: Number, Default: 30}
  RunRetentionDays: {Type: Number, Default: 30}
  MonthlyBudgetDollars: {Type: Number, Default: 0}
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
parameter_overrides = [%s]
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


Way = Literal["make", "larder"]
"""`make deploy` with samconfig.toml, or `larder install` with larder.toml. Both deploy a release."""


@dataclass(frozen=True)
class Account:
    """An empty account in the emulator, and a folder with a release to deploy."""

    emulator: Emulator
    folder: Path
    failing: Path
    way: Way = "larder"

    def release(self, template: str = TEMPLATE, **description: Any) -> None:
        """Replace the release. `description` has fields of its release.json."""
        source = self.folder / "template.yaml"
        source.write_text(template)
        plain = read_template(source)
        plain["Parameters"] |= {"CodeBucket": {"Type": "String"}, "CodePrefix": {"Type": "String"}}
        for name in (PLAIN, NO_BUDGETS):
            (self.folder / name).write_text(json.dumps(plain))
        digest = hashlib.sha256((self.folder / PLAIN).read_bytes()).hexdigest()
        described = {
            "version": "1.2.3",
            "readable_since": "1.0.0",
            "environments": {"default": {"ProtectData": "false"}, "prod": {"ProtectData": "true"}},
            "upgrade": {},
            "contents": {},
            "files": {PLAIN: digest, NO_BUDGETS: digest},
            **description,
        }
        (self.folder / DESCRIPTION).write_text(json.dumps(described))

    def configure(self, **options: str) -> None:
        """Write samconfig.toml and larder.toml with these options."""
        quoted = as_toml("prod", {}, options).partition("[prod.options]\n")[2].split("\n")
        inline = "{" + ", ".join(one for one in quoted if one) + "}"
        (self.folder / "samconfig.toml").write_text(SETTINGS % inline)
        (self.folder / "larder.toml").write_text(as_toml("prod", {"stack": "larder-prod"}, options))

    def deploy(self, *arguments: str, environ: Mapping[str, str] | None = None, answers: str | None = None) -> Done:
        """Deploy with the keys of the account and nothing else in the environment, or with these variables."""
        if self.way == "make":
            unattended = [] if answers is not None else ["--no-confirm-changeset"]
            command: list[str | Path] = [sys.executable, "-m", "tools.deploy", "--env", "prod"]
            command += ["--built", self.folder, *unattended, *arguments]
            return self.run(command, environ=environ, answers=answers)
        unattended = [] if answers is not None else ["--yes"]
        return self.larder("install", *unattended, *arguments, environ=environ, answers=answers)

    def larder(
        self, command: str, *arguments: str, environ: Mapping[str, str] | None = None, answers: str | None = None
    ) -> Done:
        """Run `larder install`, `plan` or `upgrade` with larder.toml and the release."""
        program = Path(sys.executable).with_name("larder")
        given = ("--config", self.folder / "larder.toml", "--release", self.folder)
        return self.run([program, command, *given, *arguments], environ=environ, answers=answers)

    def run(
        self, command: Sequence[str | Path], *, environ: Mapping[str, str] | None = None, answers: str | None = None
    ) -> Done:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=self.environment(environ),
            input=answers,
            stdin=None if answers is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        return Done(done.returncode, done.stdout)

    def environment(self, environ: Mapping[str, str] | None = None) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "SAM_CLI_TELEMETRY": "0",
            "AWS_ACCESS_KEY_ID": KEYS[0],
            "AWS_SECRET_ACCESS_KEY": KEYS[1],
            "AWS_ENDPOINT_URL": self.emulator.url,
            "AWS_EC2_METADATA_DISABLED": "true",
            "NO_PROXY": "*",
            **({"AWS_REGION": REGION} if environ is None else environ),
        }

    def client(self, service: str, region: str = REGION) -> Any:
        session = boto3.session.Session(*KEYS, region_name=region)
        return session.client(service, endpoint_url=self.emulator.url)  # type: ignore[call-overload]

    def stack(self, region: str = REGION) -> dict[str, Any] | None:
        cloudformation = self.client("cloudformation", region)
        found = [
            stack
            for stack in cloudformation.describe_stacks()["Stacks"]
            if stack["StackName"] == "larder-prod" and stack["StackStatus"] != "DELETE_COMPLETE"
        ]
        return found[0] if found else None

    def output(self, name: str) -> str:
        stack = self.stack()
        assert stack is not None
        return {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}[name]

    def note(self, name: str) -> str:
        note = self.client("ssm").get_parameter(Name=self.output(name))["Parameter"]
        return str(note["Value"])

    def is_protected(self) -> bool:
        table = self.client("dynamodb").describe_table(TableName=self.output("Table"))["Table"]
        return str(table["DeletionProtectionEnabled"]).lower() == "true"


@contextmanager
def empty_account(folder: Path, *, functions_at_once: int = 1000, way: Way = "larder") -> Iterator[Account]:
    """An account whose prod environment protects its data."""
    failing = folder / "fail-at"
    limits = {"LAMBDA_ACCOUNT_CONCURRENCY": str(functions_at_once)}
    with emulator(folder / "emulator", {FAIL_AT: str(failing), **limits}) as running:
        (folder / "release").mkdir()
        account = Account(running, folder / "release", failing, way)
        account.release()
        account.configure(ProtectData="true")
        yield account
