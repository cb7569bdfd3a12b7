"""The template's stack in the emulator: tables, bucket, queues and secrets, and the roles that SAM creates."""

import io
import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import Any

import boto3
from botocore.awsrequest import AWSPreparedRequest
from ministack.core.iam_evaluator import EvalContext, evaluate, parse_policy_document

from local.template import ACCOUNT_ID, load_template
from tests.emulator.process import KEYS, Emulator
from tests.rehearsal.roles import REGION, Account, Permission, Role, Statement, roles, shared_policies
from tests.sam import transformed_resources

Keys = tuple[str, str, str]
"""Access key id, secret access key and session token of a role."""

_SECRET = json.dumps({"current": "the-signing-secret-of-the-tests", "previous": ""})
_MAIL = f"//email.{REGION}."
"""What is in every request to SES."""
_READS = ("BatchGet", "Describe", "Get", "List", "Query")


class Stack:
    """The resources of the template. The methods act as the account's root."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator
        self._session: Any = boto3.session.Session(*KEYS, region_name=REGION)
        self._clients: dict[str, Any] = {}
        template = load_template(environ={})
        self._tables = {table.name: table.create_table for table in template.tables}
        self._buckets = template.buckets
        self._written: set[str] = set()
        self._sent_before = 0
        self._keys: dict[str, Keys] = {}
        self._made: set[str] = set()
        self._lacking: Permission | None = None
        self.secrets: dict[str, str] = {}
        self._account = Account(self.secrets, os.environ)

    def make(self) -> None:
        secrets = self.client("secretsmanager")
        for name in _of_type("AWS::SecretsManager::Secret"):
            made = secrets.create_secret(Name=name, SecretString=_SECRET)
            self.secrets[name] = made["ARN"]
        self._make_data()
        iam = self.client("iam")
        for name, statements in shared_policies().items():
            iam.create_policy(PolicyName=name, PolicyDocument=self._policy(statements))
        self._make_functions()
        self._written.clear()

    def client(self, service: str, keys: Keys | None = None) -> Any:
        """A client with these keys, or the root's."""
        if keys is not None:
            return self._session.client(
                service, aws_access_key_id=keys[0], aws_secret_access_key=keys[1], aws_session_token=keys[2]
            )
        if service not in self._clients:
            self._clients[service] = self._session.client(service)
        return self._clients[service]

    def queue_url(self, logical_id: str) -> str:
        return f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT_ID}/{self._account.name(logical_id)}"

    # -------------------------------------------------------------------------------------- data

    def note_write(self, request: AWSPreparedRequest) -> None:
        """Remember the tables, buckets and secrets that a request changes. `empty` empties only these."""
        operation = _text(request.headers.get("X-Amz-Target", "")).rpartition(".")[2]
        if request.method in ("GET", "HEAD") or operation.startswith(_READS):
            return
        text = _text(request.body) if operation else request.url
        names = (*self._tables, *self._buckets, *self.secrets.values(), _MAIL)
        self._written.update(name for name in names if name in text)

    def empty(self) -> None:
        """Delete everything that was written since the last time."""
        for name in self._tables.keys() & self._written:
            self.client("dynamodb").delete_table(TableName=name)
            self.client("dynamodb").create_table(**self._tables[name])
        for bucket in set(self._buckets) & self._written:
            self._empty_bucket(bucket)
        for secret in set(self.secrets.values()) & self._written:
            self.client("secretsmanager").put_secret_value(SecretId=secret, SecretString=_SECRET)
        if _MAIL in self._written:
            for known in self.client("sesv2").list_email_identities()["EmailIdentities"]:
                self.client("sesv2").delete_email_identity(EmailIdentity=known["IdentityName"])
            self._sent_before = len(self._sent())
        self._written.clear()

    def sent_by_ses(self) -> list[SimpleNamespace]:
        """The messages that SES accepted since the last time, with moto's names."""
        return [
            SimpleNamespace(
                id=mail["MessageId"],
                source=mail["Source"],
                destinations={"ToAddresses": mail["To"]},
                subject=mail["Subject"],
            )
            for mail in self._sent()[self._sent_before :]
        ]

    def _sent(self) -> list[dict[str, Any]]:
        url = f"https://email.{REGION}.amazonaws.com/_ministack/ses/messages"
        reply = self._emulator.ask("GET", url)
        sent: list[dict[str, Any]] = json.loads(reply.read())["messages"].get(ACCOUNT_ID, [])
        return sent

    def _empty_bucket(self, bucket: str) -> None:
        s3 = self.client("s3")
        listing = s3.list_object_versions(Bucket=bucket)
        for listed in listing.get("Versions", []) + listing.get("DeleteMarkers", []):
            s3.delete_object(Bucket=bucket, Key=listed["Key"], VersionId=listed["VersionId"])

    def _make_data(self) -> None:
        for table in self._tables.values():
            self.client("dynamodb").create_table(**table)
        for bucket in self._buckets:
            self.client("s3").create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
            self.client("s3").put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
        for name in _of_type("AWS::SQS::Queue"):
            self.client("sqs").create_queue(QueueName=self._account.name(name))

    def _make_functions(self) -> None:
        # Functions that others invoke by name. They do not run here.
        code = io.BytesIO()
        with zipfile.ZipFile(code, "w") as archive:
            archive.writestr("nothing.py", "")
        for name in _of_type("AWS::Lambda::Function"):
            if "FunctionName" in transformed_resources()[name]["Properties"]:
                self.client("lambda").create_function(
                    FunctionName=self._account.name(name),
                    Role=_role_arn(self._role(name)),
                    Runtime="python3.13",
                    Handler="nothing.handler",
                    Code={"ZipFile": code.getvalue()},
                )

    # ------------------------------------------------------------------------------------- roles

    def keys_of(self, function: str) -> Keys:
        """Keys of the function's role, as Lambda gives them to the function."""
        if function not in self._keys:
            arn = _role_arn(self._role(function))
            made = self.client("sts").assume_role(RoleArn=arn, RoleSessionName=function)
            keys = made["Credentials"]
            self._keys[function] = (keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"])
        return self._keys[function]

    def holder_of(self, access_key_id: str) -> str:
        """The function whose role has these keys. Raises KeyError if there is none."""
        return {keys[0]: function for function, keys in self._keys.items()}[access_key_id]

    @contextmanager
    def without(self, permission: Permission) -> Iterator[None]:
        """A context in which one function lacks one permission. Functions that share a policy with it keep theirs."""
        before = self._lacking
        self._lack(permission)
        try:
            yield
        finally:
            self._lack(before)

    def allows(self, function: str, action: str, resource: str, context: Mapping[str, str] | None = None) -> bool:
        """Whether the function's role allows an action, by the emulator's rules, for actions that its services skip.

        `context` has the request's condition keys in lower case.
        """
        role = roles()[function]
        lacking = self._lacking if self._lacking and self._lacking.function == function else None
        held = tuple(
            statement for _, statement in role.holders() if lacking is None or statement.grant != lacking.grant
        )
        asked = EvalContext(
            principal_arn=_role_arn(role),
            principal_type="AssumedRole",
            principal_account=ACCOUNT_ID,
            action=action,
            resource_arn=resource,
            region=REGION,
            service_context=dict(context or {}),
        )
        policy = parse_policy_document(self._account.document(held))
        return bool(evaluate(asked, [policy]).decision == "Allow")

    def _role(self, function: str) -> Role:
        """The function's role, created when it is first needed."""
        role = roles()[function]
        if function not in self._made:
            self._make_role(role)
            self._made.add(function)
        return role

    def _make_role(self, role: Role) -> None:
        iam = self.client("iam")
        iam.create_role(RoleName=role.name, AssumeRolePolicyDocument=json.dumps(role.trust))
        for policy in role.shared:
            iam.attach_role_policy(RoleName=role.name, PolicyArn=_policy_arn(policy))
        self._put(role, role.function, role.own)

    def _lack(self, permission: Permission | None) -> None:
        if self._lacking:
            self._hold_again(self._lacking)
        self._lacking = permission
        if permission:
            self._take_away(permission)

    def _take_away(self, permission: Permission) -> None:
        """Replace each policy that has the permission with one that lacks it."""
        role = self._role(permission.function)
        for holder, statements in _holders(role, permission).items():
            if holder != role.function:
                self.client("iam").detach_role_policy(RoleName=role.name, PolicyArn=_policy_arn(holder))
            rest = tuple(statement for statement in statements if statement.grant != permission.grant)
            self._put(role, holder, rest)

    def _hold_again(self, permission: Permission) -> None:
        role = self._role(permission.function)
        for holder, statements in _holders(role, permission).items():
            if holder == role.function:
                self._put(role, holder, statements)
                continue
            self._put(role, holder, ())
            self.client("iam").attach_role_policy(RoleName=role.name, PolicyArn=_policy_arn(holder))

    def _put(self, role: Role, name: str, statements: tuple[Statement, ...]) -> None:
        """Set a policy of the role. Without statements, delete it, because IAM allows no empty policy."""
        policy = {"RoleName": role.name, "PolicyName": name}
        if statements:
            document = self._policy(statements)
            self.client("iam").put_role_policy(**policy, PolicyDocument=document)
        else:
            with suppress(self.client("iam").exceptions.NoSuchEntityException):
                self.client("iam").delete_role_policy(**policy)

    def _policy(self, statements: tuple[Statement, ...]) -> str:
        """The policy for the emulator, which checks SES for `*` and does not know the sender of mail (see `acting`)."""
        document = self._account.document(statements)
        for statement in document["Statement"]:
            if statement["Action"] == "ses:SendEmail":
                statement["Resource"] = "*"
                statement.pop("Condition", None)
        return json.dumps(document)


def _holders(role: Role, permission: Permission) -> dict[str, tuple[Statement, ...]]:
    """The policies that give a role this permission, each with all its statements."""
    names = {name for name, one in role.holders() if one.grant == permission.grant}
    return {name: role.own if name == role.function else shared_policies()[name] for name in names}


def _of_type(kind: str) -> list[str]:
    return [name for name, one in transformed_resources().items() if one["Type"] == kind]


def _role_arn(role: Role) -> str:
    return f"arn:aws:iam::{ACCOUNT_ID}:role/{role.name}"


def _policy_arn(name: str) -> str:
    return f"arn:aws:iam::{ACCOUNT_ID}:policy/{name}"


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value or "")
