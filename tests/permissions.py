"""The permissions of each function in the template, and a guard that enforces them, because moto does not."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from larder import aws
from local.cloudformation import read_template
from local.template import load_template, resource_name
from tests.hooks import hooked

TEMPLATE = read_template(Path(__file__).resolve().parent.parent / "template.yaml")
RESOURCES: dict[str, Any] = TEMPLATE["Resources"]

Grant = tuple[str, str]
"""An action and its resource as in the template: `("dynamodb:GetItem", "TeamsTable.Arn")`."""

_OBJECTS = "${ArtifactsBucket.Arn}/artifacts/*"
_SES = "arn:${AWS::Partition}:ses:${AWS::Region}:${AWS::AccountId}"
_FUNCTIONS = {
    function.name: function.logical_id for function in load_template(environ={}).functions
}
_TABLES = {
    resource_name(logical_id): logical_id
    for logical_id, resource in RESOURCES.items()
    if resource["Type"] == "AWS::DynamoDB::Table"
}


def policies(logical_id: str) -> dict[str, list[dict[str, Any]]]:
    """The policy statements of a function: its own under its name, and each shared policy under the policy's name."""
    found: dict[str, list[dict[str, Any]]] = {}
    for policy in RESOURCES[logical_id]["Properties"].get("Policies", []):
        name = policy.get("Ref", logical_id)
        shared = RESOURCES[name]["Properties"]["PolicyDocument"] if "Ref" in policy else {}
        found.setdefault(name, []).extend((shared or policy)["Statement"])
    return found


def statements(logical_id: str) -> list[dict[str, Any]]:
    """The statements of a function, including those of its shared policies."""
    return [statement for policy in policies(logical_id).values() for statement in policy]


def granted(statements: Iterable[dict[str, Any]]) -> list[Grant]:
    """Each allowed action on each resource, repeated if several statements allow it."""
    return [
        (action, target)
        for statement in statements
        for action in _as_list(statement["Action"])
        for resource in _as_list(statement["Resource"])
        for target in resource.values()
    ]


@cache
def grants(logical_id: str) -> frozenset[Grant]:
    return frozenset(granted(statements(logical_id)))


def needs(operation: str, arguments: dict[str, Any]) -> set[Grant]:
    """The permissions that a boto3 call needs, according to the service authorization reference of each service."""
    if operation == "Invoke":
        return {("lambda:InvokeFunction", f"{_FUNCTIONS[arguments['FunctionName']]}.Arn")}
    if operation == "SendEmail":
        # The second is needed if the sender's address or domain has a configuration set.
        return {("ses:SendEmail", f"{_SES}:{kind}/*") for kind in ("identity", "configuration-set")}
    if operation in ("HeadObject", "GetObject"):
        # Without the second, S3 returns 403 for a missing object.
        return {("s3:GetObject", _objects(arguments)), ("s3:ListBucket", "ArtifactsBucket.Arn")}
    if operation == "GetSecretValue":
        return {("secretsmanager:GetSecretValue", "SigningSecret")}
    if operation in ("PutObject", "DeleteObject"):
        return {(f"s3:{operation}", _objects(arguments))}
    if operation in ("TransactGetItems", "TransactWriteItems"):
        return {
            (f"dynamodb:{action}Item", _table(inner))
            for item in arguments["TransactItems"]
            for action, inner in item.items()
        }
    if operation == "BatchGetItem":
        return {
            ("dynamodb:BatchGetItem", f"{_TABLES[name]}.Arn") for name in arguments["RequestItems"]
        }
    if "IndexName" in arguments:
        logical_id = _TABLES[arguments["TableName"]]
        return {(f"dynamodb:{operation}", f"${{{logical_id}.Arn}}/index/{arguments['IndexName']}")}
    return {(f"dynamodb:{operation}", _table(arguments))}


def function_of(handler: str) -> str:
    """The logical id of the function that has this handler."""
    return next(
        name
        for name, resource in RESOURCES.items()
        if resource.get("Properties", {}).get("Handler") == handler
    )


@contextmanager
def held_to_its_grants(handler: str) -> Iterator[None]:
    """Fail on calls that the function of this handler has no permission for."""
    logical_id = function_of(handler)
    missing: set[Grant] = set()

    def check(params: dict[str, Any], model: Any, **_: object) -> None:
        missing.update(needs(model.name, params) - grants(logical_id))

    clients = (aws.dynamodb(), aws.s3(), aws.lambda_(), aws.secrets_manager(), aws.sesv2())
    with hooked("provide-client-params", check, *clients):
        yield
    assert not missing, f"template.yaml does not grant {logical_id} {sorted(missing)}"


def _table(arguments: dict[str, Any]) -> str:
    return f"{_TABLES[arguments['TableName']]}.Arn"


def _objects(arguments: dict[str, Any]) -> str:
    return _OBJECTS if arguments["Key"].startswith("artifacts/") else arguments["Key"]


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
