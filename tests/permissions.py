"""The permissions of each function in the template, and a guard that enforces them, because moto does not."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from email.utils import parseaddr
from fnmatch import fnmatchcase
from functools import cache
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any
from weakref import WeakSet

from larder.aws import boto
from local.cloudformation import by_default, read_template
from local.template import resource_name
from tests.default_template import template
from tests.moto_sockets import show, watching
from tests.own_variables import variable

TEMPLATE = read_template(Path(__file__).resolve().parent.parent / "template.yaml")
RESOURCES: dict[str, Any] = TEMPLATE["Resources"]

Grant = tuple[str, str]
"""An action and its resource as in the template: `("dynamodb:GetItem", "TeamsTable.Arn")`."""

Use = tuple[str, Grant]
"""A function, by its logical id, and what it needs."""

USED: set[Use] = set()
"""What the functions needed in the tests of this process so far."""

_OBJECTS = {f"{folder}/": f"${{ArtifactsBucket.Arn}}/{folder}/*" for folder in ("artifacts", "inputs")}
_ITSELF = "arn:${AWS::Partition}:lambda:${AWS::Region}:${AWS::AccountId}:function:${AWS::StackName}-SweepArtifacts-*"
_SES = "arn:${AWS::Partition}:ses:${AWS::Region}:${AWS::AccountId}"
_FUNCTIONS = {function.name: function.logical_id for function in template().functions}
_TABLES = {
    resource_name(logical_id): logical_id
    for logical_id, resource in RESOURCES.items()
    if resource["Type"] == "AWS::DynamoDB::Table"
}


def policies(logical_id: str, *, keys_act_as_sessions: bool = True) -> dict[str, list[dict[str, Any]]]:
    """The policy statements of a function: its own under its name, and each shared policy under the policy's name.

    `keys_act_as_sessions` is the template's condition of that name, the only one for statements.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    for listed in RESOURCES[logical_id]["Properties"].get("Policies", []):
        policy = listed
        if "Fn::If" in listed:
            condition, policy, otherwise = listed["Fn::If"]
            assert (condition, otherwise) == ("HasEdge", {"Ref": "AWS::NoValue"})
        name = policy.get("Ref", logical_id)
        shared = RESOURCES[name]["Properties"]["PolicyDocument"] if "Ref" in policy else {}
        for statement in (shared or policy)["Statement"]:
            if "Fn::If" not in statement:
                found.setdefault(name, []).append(statement)
                continue
            condition, conditional, otherwise = statement["Fn::If"]
            assert (condition, otherwise) == ("KeysActAsSessions", {"Ref": "AWS::NoValue"})
            if keys_act_as_sessions:
                found.setdefault(name, []).append(conditional)
    return found


def statements(logical_id: str, *, keys_act_as_sessions: bool = True) -> list[dict[str, Any]]:
    """The statements of a function, including those of its shared policies."""
    held = policies(logical_id, keys_act_as_sessions=keys_act_as_sessions)
    return [statement for policy in held.values() for statement in policy]


def granted(statements: Iterable[dict[str, Any]]) -> list[Grant]:
    """Each allowed action on each resource, repeated if several statements allow it."""
    return [
        # SAM splits `!GetAtt Table.Arn`.
        (action, ".".join(_as_list(target)))
        for statement in statements
        for action in _as_list(statement["Action"])
        for resource in _as_list(by_default(TEMPLATE, statement["Resource"]))
        for target in resource.values()
    ]


@cache
def grants(logical_id: str) -> frozenset[Grant]:
    return frozenset(granted(statements(logical_id)))


def needs(operation: str, arguments: dict[str, Any]) -> set[Grant]:
    """The permissions that a boto3 call needs, according to the service authorization reference of each service."""
    return {grant for grant, _ in asks(operation, arguments)}


Context = Mapping[str, Sequence[str]]
"""The condition keys of a call, with their values."""


def asks(operation: str, arguments: dict[str, Any]) -> Iterator[tuple[Grant, Context]]:
    """The permissions that a boto3 call needs, each with the context that AWS evaluates conditions with."""
    if operation in ("TransactGetItems", "TransactWriteItems"):
        for item in arguments["TransactItems"]:
            for action, inner in item.items():
                yield (f"dynamodb:{action}Item", _table(inner)), _leading_keys(inner)
        return
    context = _context(operation, arguments)
    for grant in _grants_of(operation, arguments):
        yield grant, context


def _context(operation: str, arguments: dict[str, Any]) -> Context:
    if operation == "SendEmail":
        return {"ses:FromAddress": [parseaddr(arguments["FromEmailAddress"])[1]]}
    if operation in ("ListObjectsV2", "ListObjectVersions"):
        return {"s3:prefix": [arguments["Prefix"]]} if "Prefix" in arguments else {}
    # HeadObject and GetObject: whether the implicit s3:ListBucket has a prefix is not documented, so it has none here.
    return _leading_keys(arguments) if "TableName" in arguments else {}


def _leading_keys(arguments: dict[str, Any]) -> Context:
    """The partition key of a call for one item."""
    item = arguments.get("Item") or arguments.get("Key")
    if item is None:
        return {}
    schema = RESOURCES[_TABLES[arguments["TableName"]]]["Properties"]["KeySchema"]
    (name,) = (key["AttributeName"] for key in schema if key["KeyType"] == "HASH")
    return {"dynamodb:LeadingKeys": list(item[name].values())}


def _grants_of(operation: str, arguments: dict[str, Any]) -> set[Grant]:
    if operation == "Invoke":
        function = arguments["FunctionName"]
        target = f"{_FUNCTIONS[function]}.Arn" if function in _FUNCTIONS else _ITSELF
        return {("lambda:InvokeFunction", target)}
    if operation == "SendEmail":
        # The second is needed if the sender's address or domain has a configuration set.
        return {("ses:SendEmail", f"{_SES}:{kind}/*") for kind in ("identity", "configuration-set")}
    if operation in ("HeadObject", "GetObject"):
        # Without the second, S3 returns 403 for a missing object or version.
        listing = "s3:ListBucketVersions" if "VersionId" in arguments else "s3:ListBucket"
        action = f"s3:GetObject{_versioned(arguments)}"
        return {(action, _objects(arguments)), (listing, "ArtifactsBucket.Arn")}
    if operation == "ListObjectVersions":
        return {("s3:ListBucketVersions", "ArtifactsBucket.Arn")}
    if operation == "GetSecretValue":
        return {("secretsmanager:GetSecretValue", "SigningSecret")}
    if operation == "CopyObject":
        source = arguments["CopySource"]
        read = (f"s3:GetObject{_versioned(source)}", _objects(source))
        return {read, ("s3:PutObject", _objects(arguments))}
    if operation == "DeleteObjects":
        return {(f"s3:DeleteObject{_versioned(each)}", _objects(each)) for each in arguments["Delete"]["Objects"]}
    if operation in ("PutObject", "DeleteObject"):
        return {(f"s3:{operation}{_versioned(arguments)}", _objects(arguments))}
    if operation == "BatchGetItem":
        return {("dynamodb:BatchGetItem", f"{_TABLES[name]}.Arn") for name in arguments["RequestItems"]}
    if "IndexName" in arguments:
        logical_id = _TABLES[arguments["TableName"]]
        return {(f"dynamodb:{operation}", f"${{{logical_id}.Arn}}/index/{arguments['IndexName']}")}
    return {(f"dynamodb:{operation}", _table(arguments))}


def allows(logical_id: str, grant: Grant, context: Context, *, keys_act_as_sessions: bool = True) -> bool:
    """Whether a statement of the function grants this to a call with this context."""
    conditions = _conditions(logical_id, keys_act_as_sessions).get(grant, [])
    return any(is_met(condition, context) for condition in conditions)


@cache
def _conditions(logical_id: str, keys_act_as_sessions: bool) -> dict[Grant, list[dict[str, Any]]]:
    """The conditions of each grant, one for each statement with it. Empty for a statement without one."""
    found: dict[Grant, list[dict[str, Any]]] = {}
    for statement in statements(logical_id, keys_act_as_sessions=keys_act_as_sessions):
        for grant in granted([statement]):
            found.setdefault(grant, []).append(statement.get("Condition", {}))
    return found


def is_met(condition: dict[str, Any], context: Context) -> bool:
    """Whether the context meets every test of a condition, as IAM's reference of condition operators says."""
    return all(
        _passes(operator, [_value(one) for one in _as_list(wanted)], context.get(key))
        for operator, tests in condition.items()
        for key, wanted in tests.items()
    )


def _passes(operator: str, wanted: list[str], given: Sequence[str] | None) -> bool:
    def is_like(value: str) -> bool:
        return any(fnmatchcase(value, pattern) for pattern in wanted)

    match operator:
        case "StringEquals":
            return given is not None and given[0] in wanted
        case "StringLikeIfExists":
            return given is None or is_like(given[0])
        case "NotIpAddress":
            return given is None or not any(ip_address(given[0]) in ip_network(one) for one in wanted)
        case "ForAllValues:StringLike":
            return all(map(is_like, given or []))
    raise AssertionError(f"tests/permissions.py does not evaluate {operator}")


def _value(value: Any) -> str:
    if isinstance(value, str):
        return value
    assert value == {"Ref": "EmailSender"}, value
    return variable("email_sender")


@cache
def function_of(handler: str) -> str:
    """The logical id of the function that has this handler."""
    return next(
        name for name, resource in RESOURCES.items() if resource.get("Properties", {}).get("Handler") == handler
    )


@contextmanager
def held_to_its_grants(handler: str) -> Iterator[None]:
    """Fail on calls that the function of this handler has no permission for.

    While functions run at the same time, nothing says which one makes a call, so each may do what any of them may.
    """
    logical_id = function_of(handler)
    missing: list[tuple[Grant, Context]] = []

    on = variable("session_for_api_keys") == "true"

    def check(operation: str, arguments: dict[str, Any]) -> None:
        for grant, context in asks(operation, arguments):
            if _running == [logical_id]:
                USED.add((logical_id, grant))
            if not any(allows(running, grant, context, keys_act_as_sessions=on) for running in _running):
                missing.append((grant, context))

    _watch_boto3()
    _running.append(logical_id)
    try:
        with watching(check):
            yield
    finally:
        _running.remove(logical_id)
    assert not missing, f"template.yaml does not grant {logical_id} {missing}"


_running: list[str] = []
"""The functions that run."""

_watched: WeakSet[Any] = WeakSet()
"""boto3's clients whose calls are shown to every watch. To register a hook for each function would take longer."""


def _watch_boto3() -> None:
    for service in ("dynamodb", "s3", "lambda", "secretsmanager", "sesv2"):
        client = boto.client(service)
        if client not in _watched:
            _watched.add(client)
            client.meta.events.register_first("provide-client-params", _show)


def _show(params: dict[str, Any], model: Any, **_: object) -> None:
    show(model.name, params)


def _versioned(arguments: dict[str, Any]) -> str:
    return "Version" if "VersionId" in arguments else ""


def _table(arguments: dict[str, Any]) -> str:
    return f"{_TABLES[arguments['TableName']]}.Arn"


def _objects(arguments: dict[str, Any]) -> str:
    key: str = arguments["Key"]
    found = (every for folder, every in _OBJECTS.items() if key.startswith(folder))
    return next(found, key)


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
