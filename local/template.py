"""Read template.yaml for one machine.

Names that AWS would generate (of tables and the bucket) are derived from the logical ids. Parameters take their
defaults. A variable in the caller's environment overrides the template's value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from pathlib import Path
from typing import Any

from larder.settings import Settings, environment_name, unpacked
from local.cloudformation import NOTHING, TemplateError, by_default, holds, read_template, resolve

REGION = "us-east-1"
ACCOUNT_ID = "000000000000"

_DEFAULT_TIMEOUT_S = 3
_DEFAULT_MEMORY_MB = 128
DEFAULT_PATH = "$default"
"""The route of every request that no other route takes."""
_RATE = re.compile(r"rate\((\d+) (minute|hour|day)s?\)")
_CAMEL_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PSEUDO_PARAMETERS = {
    "AWS::Region": REGION,
    "AWS::AccountId": ACCOUNT_ID,
    "AWS::Partition": "aws",
    "AWS::StackName": "larder",
    "AWS::URLSuffix": "amazonaws.com",
}
_OF_THE_COMMAND = {"LARDER_LOCAL", "LARDER_STACK"}
_OF_THE_EDGE = ("EdgeRequest", "EdgeResponse")
"""The functions of the edge."""
_CREATE_TABLE = (
    "AttributeDefinitions",
    "KeySchema",
    "GlobalSecondaryIndexes",
    "LocalSecondaryIndexes",
    "BillingMode",
    "ProvisionedThroughput",
)


@dataclass(frozen=True, slots=True)
class Function:
    """One function. `code_folder` is its own zip (/var/task); `layers` are the folders of its layers (/opt).
    `source_folder` has the handlers, which the build copies into the layer.

    Invocations use `name`; the screen and the logs show `logical_id`. `variables` are the names of the variables that
    the template sets for it.
    """

    logical_id: str
    handler: str
    code_folder: Path
    timeout_s: int
    memory_mb: int
    layers: tuple[Path, ...] = ()
    log_format: str = "Text"
    name: str = ""
    variables: frozenset[str] = frozenset()
    source_folder: Path = Path()


@dataclass(frozen=True, slots=True)
class Route:
    """One route of the HTTP API; `path` may hold `{parameters}`, or is `$default`."""

    method: str
    path: str
    function: Function

    @property
    def key(self) -> str:
        """The route key in events and logs."""
        return self.path if self.path == DEFAULT_PATH else f"{self.method} {self.path}"


@dataclass(frozen=True, slots=True)
class EventRule:
    """A function that gets the EventBridge events that match `pattern`."""

    pattern: dict[str, Any]
    function: Function


@dataclass(frozen=True, slots=True)
class Schedule:
    """A function that runs every `every`."""

    name: str
    every: timedelta
    function: Function


@dataclass(frozen=True, slots=True)
class Table:
    """A table: the arguments of `create_table`, and the attribute that holds its items' time to live, if any."""

    logical_id: str
    create_table: dict[str, Any]
    ttl_attribute: str | None

    @property
    def name(self) -> str:
        return str(self.create_table["TableName"])


@dataclass(frozen=True, slots=True)
class EdgeCode:
    """The code of the edge's functions, for requests and for replies."""

    request: str
    response: str


@dataclass(frozen=True, slots=True)
class Template:
    """The service as the template describes it."""

    functions: list[Function] = field(default_factory=list)
    routes: list[Route] = field(default_factory=list)
    event_rules: list[EventRule] = field(default_factory=list)
    schedules: list[Schedule] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    buckets: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    edge: EdgeCode | None = None


def template_path() -> Path:
    """The repository's own template."""
    return Path(__file__).resolve().parent.parent / "template.yaml"


def load_template(path: Path | None = None, environ: Mapping[str, str] | None = None) -> Template:
    """Read the template at `path` (the repository's own when None).

    Variables in `environ` that are named `LARDER_...`, or that the template names, replace the template's.
    Raises TemplateError.
    """
    path = path or template_path()
    document = read_template(path)
    names = _Names(document)
    functions = _properties_by_type(document, "AWS::Serverless::Function")
    shared = document.get("Globals", {}).get("Function", {})
    template = Template(edge=_edge(document, names, environ or {}))
    layers = {
        names.ref(logical_id): (path.parent / str(properties.get("ContentUri", "."))).resolve()
        for logical_id, properties in _properties_by_type(
            document, "AWS::Serverless::LayerVersion"
        ).items()
    }
    for logical_id, properties in functions.items():
        condition = document["Resources"][logical_id].get("Condition")
        if condition and not holds(document, condition):
            # It can be called, but nothing starts it.
            properties = {**properties, "Events": {}}  # noqa: PLW2901
        _add_function(template, logical_id, shared, properties, names, path.parent, layers)
    template.tables.extend(_tables(document, names))
    template.buckets.extend(
        names.ref(logical_id) for logical_id in _properties_by_type(document, "AWS::S3::Bucket")
    )
    template.environment.update(_overridden_settings(template, environ or {}))
    return template


def _edge(document: dict[str, Any], names: _Names, environ: Mapping[str, str]) -> EdgeCode | None:
    functions = _properties_by_type(document, "AWS::CloudFront::Function")
    if not all(name in functions for name in _OF_THE_EDGE):
        return None
    networks = environ.get("LARDER_ALLOWED_NETWORKS")

    def ref(name: str) -> Any:
        return networks if networks and name == "AllowedNetworks" else names.ref(name)

    codes = (resolve(functions[name]["FunctionCode"], ref, names.get_att) for name in _OF_THE_EDGE)
    return EdgeCode(*codes)


def _overridden_settings(template: Template, environ: Mapping[str, str]) -> dict[str, str]:
    # Names of tables, bucket and functions cannot be overridden. Those of a deployed stack, exported for the
    # operator's command, do not exist here.
    own_names = {table.name for table in template.tables} | set(template.buckets)
    own_names |= {function.name for function in template.functions}
    return {
        name: text
        for name, text in environ.items()
        if (name.startswith("LARDER_") or name in template.environment)
        and template.environment.get(name) not in own_names
    }


def unknown_options(template: Template, environ: Mapping[str, str]) -> list[str]:
    """Variables `LARDER_...` in `environ` that neither the code nor the template knows, nor the operator's command."""
    known = {environment_name(option.name) for option in fields(Settings)} | _OF_THE_COMMAND
    known = known.union(*(function.variables for function in template.functions))
    return sorted(name for name in environ if name.startswith("LARDER_") and name not in known)


def function_arn(name: str) -> str:
    """The ARN in a function's context."""
    return f"arn:aws:lambda:{REGION}:{ACCOUNT_ID}:function:{name}"


def resource_name(logical_id: str) -> str:
    """The name that a resource gets on one machine: `ApiKeysTable` is `larder-api-keys-table`."""
    return "larder-" + _CAMEL_HUMP.sub("-", logical_id).lower()


class _Names:
    """The values of `!Ref`, `!GetAtt` and, by the defaults of the parameters, `!If`."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document
        self._parameters: dict[str, Any] = document.get("Parameters", {})
        self._resources: dict[str, Any] = document.get("Resources", {})

    def ref(self, name: str) -> Any:
        if name in _PSEUDO_PARAMETERS:
            return _PSEUDO_PARAMETERS[name]
        if name in self._parameters:
            return self._parameters[name].get("Default", "")
        if name in self._resources:
            properties = self._resources[name].get("Properties", {})
            given = self.resolve({"Name": properties.get("FunctionName", NOTHING)})
            return given.get("Name", resource_name(name))
        raise KeyError(name)

    def get_att(self, name: str, attribute: str) -> str:
        if name not in self._resources:
            raise KeyError(name)
        if attribute == "Arn":
            return f"arn:aws:local:{REGION}:{ACCOUNT_ID}:{resource_name(name)}"
        return f"{resource_name(name)}.{attribute}"

    def resolve(self, value: Any) -> Any:
        return resolve(by_default(self._document, value), self.ref, self.get_att)


def _properties_by_type(document: dict[str, Any], type_name: str) -> dict[str, dict[str, Any]]:
    return {
        logical_id: resource.get("Properties", {})
        for logical_id, resource in document.get("Resources", {}).items()
        if resource.get("Type") == type_name
    }


def _add_function(
    template: Template,
    logical_id: str,
    shared: dict[str, Any],
    own: dict[str, Any],
    names: _Names,
    root: Path,
    layers: dict[str, Path],
) -> None:
    properties = {**shared, **own}
    logging = {**shared.get("LoggingConfig", {}), **own.get("LoggingConfig", {})}
    # SAM adds the layers of a function to those of all functions.
    used = [*shared.get("Layers", []), *own.get("Layers", [])]
    variables = [
        unpacked(names.resolve(source.get("Environment", {}).get("Variables", {})))
        for source in (shared, own)
    ]
    function = Function(
        logical_id=logical_id,
        handler=str(properties["Handler"]),
        code_folder=(root / str(properties.get("CodeUri", "."))).resolve(),
        timeout_s=int(names.resolve(properties.get("Timeout", _DEFAULT_TIMEOUT_S))),
        memory_mb=int(names.resolve(properties.get("MemorySize", _DEFAULT_MEMORY_MB))),
        # A third-party layer has an ARN, and no folder on one machine.
        layers=tuple(layers[name] for name in names.resolve(used) if name in layers),
        log_format=str(logging.get("LogFormat", "Text")),
        name=str(names.ref(logical_id)),
        variables=frozenset().union(*variables),
        source_folder=(root / "functions").resolve(),
    )
    template.functions.append(function)
    for more in variables:
        _merge_environment(template.environment, more, logical_id)
    for name, event in own.get("Events", {}).items():
        _add_trigger(template, function, name, event, names)


def _merge_environment(environment: dict[str, str], more: dict[str, Any], logical_id: str) -> None:
    # Workers serve every function, so a variable has the same value in all of them.
    for name, value in more.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if environment.setdefault(name, text) != text:
            raise TemplateError(
                f"{logical_id} sets {name} to another value than other functions do"
            )


def _add_trigger(
    template: Template, function: Function, name: str, event: dict[str, Any], names: _Names
) -> None:
    kind, properties = event["Type"], event.get("Properties", {})
    if kind == "HttpApi":
        method = str(properties.get("Method", "ANY")).upper()
        template.routes.append(Route(method, str(properties["Path"]), function))
    elif kind in ("EventBridgeRule", "CloudWatchEvent"):
        template.event_rules.append(EventRule(names.resolve(properties["Pattern"]), function))
    elif kind in ("Schedule", "ScheduleV2"):
        expression = properties.get("Schedule", properties.get("ScheduleExpression"))
        every = _rate(str(names.resolve(expression)), function.logical_id)
        template.schedules.append(Schedule(name, every, function))
    else:
        raise TemplateError(
            f"{function.logical_id} has a trigger of type {kind}, which the local cloud does not support"
        )


def _rate(expression: str, logical_id: str) -> timedelta:
    match = _RATE.fullmatch(expression)
    if not match:
        raise TemplateError(
            f"{logical_id}: only rate(...) schedules are supported, not {expression!r}"
        )
    return timedelta(**{match[2] + "s": int(match[1])})


def _tables(document: dict[str, Any], names: _Names) -> list[Table]:
    tables = []
    for logical_id, properties in _properties_by_type(document, "AWS::DynamoDB::Table").items():
        known = {key: names.resolve(properties[key]) for key in _CREATE_TABLE if key in properties}
        for index in known.get("GlobalSecondaryIndexes", []):
            # DynamoDB Local refuses a limit of an index, and no engine applies one.
            index.pop("OnDemandThroughput", None)
        ttl = properties.get("TimeToLiveSpecification", {})
        tables.append(
            Table(
                logical_id=logical_id,
                create_table={"TableName": names.ref(logical_id), **known},
                ttl_attribute=str(ttl["AttributeName"]) if ttl.get("Enabled") else None,
            )
        )
    return tables
