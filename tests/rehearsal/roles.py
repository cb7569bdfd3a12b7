"""The roles that SAM creates for the functions: each permission in them, and the policies of an account."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from larder.settings import environment_name
from local.cloudformation import by_default, resolve
from local.template import ACCOUNT_ID, resource_name
from tests.permissions import TEMPLATE, Grant
from tests.sam import transformed_resources

REGION = "eu-central-1"

_WITH_EDGE = "HasEdge"

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PSEUDO_PARAMETERS = {
    "AWS::AccountId": ACCOUNT_ID,
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::StackName": "larder",
}
_ARNS = {
    "AWS::DynamoDB::Table": f"arn:aws:dynamodb:{REGION}:{ACCOUNT_ID}:table/",
    "AWS::Lambda::Function": f"arn:aws:lambda:{REGION}:{ACCOUNT_ID}:function:",
    "AWS::S3::Bucket": "arn:aws:s3:::",
    "AWS::SQS::Queue": f"arn:aws:sqs:{REGION}:{ACCOUNT_ID}:",
}

Document = dict[str, Any]
"""A policy in the format of IAM."""


@dataclass(frozen=True, slots=True, order=True)
class Permission:
    """One action that a function may perform on one resource. `target` is the resource as written in the template."""

    function: str
    action: str
    target: str

    @property
    def grant(self) -> Grant:
        return self.action, self.target


@dataclass(frozen=True, slots=True)
class Statement:
    """A permission in a policy. Statements with many actions and resources are split."""

    action: str
    target: str
    resource: Any
    condition: Any

    @property
    def grant(self) -> Grant:
        return self.action, self.target


@dataclass(frozen=True, slots=True)
class Role:
    """The role of a function: its own policy, and the shared policies that it names.

    Amazon's own policies are left out. They allow writing logs and traces, which Lambda does and not the function.
    """

    function: str
    own: tuple[Statement, ...]
    shared: tuple[str, ...]
    trust: Document

    @property
    def name(self) -> str:
        return f"{self.function}Role"

    def holders(self) -> Iterator[tuple[str, Statement]]:
        """Every statement, and the function or shared policy that has it."""
        for statement in self.own:
            yield self.function, statement
        for policy in self.shared:
            for statement in shared_policies()[policy]:
                yield policy, statement

    def permissions(self) -> set[Permission]:
        return {Permission(self.function, statement.action, statement.target) for _, statement in self.holders()}


@cache
def roles() -> dict[str, Role]:
    """The roles, by the logical id of the function."""
    found = {}
    for logical_id, resource in transformed_resources().items():
        if resource["Type"] != "AWS::Lambda::Function":
            continue
        role = resource["Properties"]["Role"]["Fn::GetAtt"][0]
        properties = transformed_resources()[role]["Properties"]
        own = (policy["PolicyDocument"] for policy in properties.get("Policies", []))
        found[logical_id] = Role(
            function=logical_id,
            own=tuple(statement for document in own for statement in _statements(document)),
            shared=tuple(_policy(arn) for arn in properties["ManagedPolicyArns"] if isinstance(arn, dict)),
            trust=properties["AssumeRolePolicyDocument"],
        )
    return found


def _policy(arn: dict[str, Any]) -> str:
    """The logical id of a shared policy. The roles are those of a stack with the edge."""
    condition, policy, _ = arn.get("Fn::If", (_WITH_EDGE, arn, None))
    assert condition == _WITH_EDGE
    return str(policy["Ref"])


@cache
def shared_policies() -> dict[str, tuple[Statement, ...]]:
    """The shared policies, by logical id. Those for a KMS key are left out, because the emulator encrypts nothing."""
    return {
        logical_id: tuple(_statements(resource["Properties"]["PolicyDocument"]))
        for logical_id, resource in transformed_resources().items()
        if resource["Type"] == "AWS::IAM::ManagedPolicy" and resource.get("Condition", _WITH_EDGE) == _WITH_EDGE
    }


@cache
def permissions() -> frozenset[Permission]:
    """Every permission of every function."""
    return frozenset(permission for role in roles().values() for permission in role.permissions())


class Account:
    """The names that the resources have in one account, so that policies can name them."""

    def __init__(self, secrets: Mapping[str, str], environ: Mapping[str, str]) -> None:
        """`secrets` are ARNs by logical id. Parameters have the values of their variables in `environ`."""
        self._secrets = secrets
        self._environ = environ

    def document(self, statements: tuple[Statement, ...]) -> Document:
        """A policy with these statements."""
        return {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Effect": "Allow",
                    "Action": statement.action,
                    "Resource": self.arn(statement),
                    **({"Condition": self._resolved(statement.condition)} if statement.condition else {}),
                }
                for statement in statements
            ],
        }

    def arn(self, statement: Statement) -> str:
        return str(self._resolved(statement.resource))

    def _resolved(self, value: Any) -> Any:
        return resolve(value, self._ref, self._get_att)

    def _ref(self, name: str) -> str:
        if name in _PSEUDO_PARAMETERS:
            return _PSEUDO_PARAMETERS[name]
        if name in TEMPLATE["Parameters"]:
            return self._environ.get(environment_name(_HUMP.sub("_", name).lower()), "")
        return self._secrets[name] if name in self._secrets else self.name(name)

    def _get_att(self, name: str, attribute: str) -> str:
        if attribute != "Arn":
            raise KeyError(f"{name}.{attribute}")
        return _ARNS[transformed_resources()[name]["Type"]] + self.name(name)

    def name(self, logical_id: str) -> str:
        given = transformed_resources()[logical_id].get("Properties", {}).get("FunctionName")
        return self._resolved(given) if given else resource_name(logical_id)


def _statements(document: Document) -> Iterator[Statement]:
    for statement in document["Statement"]:
        # A conditional statement counts as granted: the tests also cover what needs it.
        _, statement, _ = statement.get("Fn::If", (None, statement, None))  # noqa: PLW2901
        # The rules of the template (tests/test_template.py) allow nothing else.
        assert statement["Effect"] == "Allow"
        for action in _as_list(statement["Action"]):
            for resource in _as_list(by_default(TEMPLATE, statement["Resource"])):
                yield Statement(action, _target(resource), resource, statement.get("Condition"))


def _target(resource: Any) -> str:
    """The value as written in the template. SAM splits `!GetAtt Table.Arn`."""
    if isinstance(resource, str):
        return resource
    (value,) = resource.values()
    return ".".join(value) if isinstance(value, list) else str(value)


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
