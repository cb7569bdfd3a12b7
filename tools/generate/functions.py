"""The properties of functions in the template, and tables of functions, from the modules of functions/.

A module has the name of its function. Its routes are the arguments of its decorators. A page has no decorator: its
routes are the module's docstring. The docstring of the function is its summary.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tools.generate.options import INVOKED, prefixed
from tools.generate.text import camel_case, sentence

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "functions"
TEMPLATE = ROOT / "template.yaml"

EVENT_NAMES = {
    ("GET", "/console/{proxy+}"): "ShowConsoleView",
    ("GET", "/docs/{proxy+}"): "ShowDocsPage",
    ("POST", "/api/auth/sign-in/sso"): "StartProviderSignInByAddress",
    ("POST", "/v1/teams/{idOrSlug}/members"): "InviteMembersFirst",
    ("POST", "/v1/teams/{idOrSlug}/members/teams/join"): "JoinTeamByCode",
    ("OPTIONS", "/v8/artifacts"): "PreflightQuery",
    ("OPTIONS", "/v8/artifacts/events"): "PreflightEvents",
    ("OPTIONS", "/v8/artifacts/status"): "PreflightStatus",
    ("OPTIONS", "/v8/artifacts/{hash}"): "PreflightArtifact",
}
"""The events of functions with several routes. All others have the name of their function."""

_BY_HAND = re.compile(
    r'^  # <<<cog functions\.function\("\w+\.(\w+)"\) >>>$.*?^  # <<<end>>>$((?:\n {4}[^\n]*)*\n)',
    re.MULTILINE | re.DOTALL,
)
"""The module of a function in the template, and the lines after its markers."""
_BUSY = re.compile(r"/v8/artifacts\b|/api/auth/api-key/verify$")
"""The paths that builds and servers call. A server verifies the keys of many clients."""
_ROUTE = re.compile(r"(?P<method>[A-Z]+) (?P<path>/\S*)")
_PLACEHOLDERS = {"artifact_hash": "hash", "id_or_slug": "idOrSlug", "provider_id": "id"}


class Undeclared(Exception):
    """A module lacks a docstring or a function with its name."""


@dataclass(frozen=True, slots=True)
class Route:
    """One route of a function, as the template spells it, with a summary of what a request does."""

    method: str
    path: str
    summary: str


@dataclass(frozen=True, slots=True)
class Function:
    """One module of functions/. `trigger` is the first line of its docstring."""

    domain: str
    module: str
    trigger: str
    summary: str
    routes: tuple[Route, ...]

    @property
    def logical_id(self) -> str:
        return camel_case(self.module)

    @property
    def log_group(self) -> str:
        """The logical id of the log group, which all functions of the domain share."""
        return f"{camel_case(self.domain)}LogGroup"


def function(name: str) -> None:
    """The beginning of a function's resource, from its module. You write the rest, such as policies, by hand."""
    domain, _, module = name.partition(".")
    one = next((one for one in functions() if (one.domain, one.module) == (domain, module)), None)
    if one is None:
        raise Undeclared(f"there is no functions/{domain}/{module}.py")
    print(f"  {one.logical_id}:")
    print("    Type: AWS::Serverless::Function")
    print("    Properties:")
    print(f"      Handler: {name}.handler")
    if one.module in INVOKED.values():
        print(f"      FunctionName: {prefixed(one.module.replace('_', '-'))}")
    if one.routes:
        print("      Events:")
    for route in one.routes:
        path = f'"{route.path}"' if "{" in route.path else route.path
        event = EVENT_NAMES.get((route.method, route.path), one.logical_id)
        properties = f"ApiId: !Ref HttpApi, Method: {route.method}, Path: {path}"
        print(f"        {event}: {{Type: HttpApi, Properties: {{{properties}}}}}")


def throttling_of_builds() -> None:
    """The limits of the routes that builds and servers call. All others have those of DefaultRouteSettings."""
    routes = sorted(
        (route for one in functions() for route in one.routes), key=lambda one: one.path
    )
    for route in routes:
        if _BUSY.match(route.path):
            print(
                f'"{route.method} {route.path}":'
                " {ThrottlingRateLimit: !Ref ThrottlingRate, ThrottlingBurstLimit: !Ref ThrottlingBurst}"
            )


def log_groups() -> None:
    """A log group for each domain."""
    for name in sorted({one.log_group for one in functions()}):
        print(f"  {name}:")
        print("    Type: AWS::Logs::LogGroup")
        print("    Properties:")
        print("      RetentionInDays: !Ref LogRetentionDays")
        print('      KmsKeyId: !If [HasKmsKey, !Ref KmsKeyArn, !Ref "AWS::NoValue"]')
        print()


def roles_with_policies() -> None:
    """The roles of the functions with policies, which you write by hand. All others can read no data.

    A function with a condition has no role without it, so that nothing can name that. The only one reads no data.
    """
    # Not read as YAML: a new function has only its markers and policies.
    written = _BY_HAND.findall(TEMPLATE.read_text())
    modules = [
        module
        for module, by_hand in written
        if "\n      Policies:\n" in by_hand and "\n    Condition:" not in by_hand
    ]
    for name in sorted(map(camel_case, modules)):
        print(f"- !Ref {name}Role")


@cache
def functions() -> list[Function]:
    """Every function, by domain and route; those without a route come last."""
    found = [_read(path) for path in FOLDER.glob("*/*.py") if not path.name.startswith("__")]
    return sorted(
        found,
        key=lambda one: (one.domain, *([one.routes[0].path] if one.routes else ["~"]), one.module),
    )


def _read(path: Path) -> Function:
    tree = ast.parse(path.read_text())
    trigger = (ast.get_docstring(tree) or "").partition("\n")[0]
    handlers = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    named = next((one for one in handlers if one.name == path.stem), None)
    if named is None:
        raise Undeclared(f"{path} needs a function {path.stem}")
    routes = [
        Route(method, pattern, _summary(handler))
        for handler in handlers
        for method, pattern in _declared(handler)
    ]
    if not routes:
        pages = filter(None, map(_ROUTE.fullmatch, trigger.split(" and ")))
        routes = [Route(page["method"], page["path"], _summary(named)) for page in pages]
    if not routes and not trigger:
        raise Undeclared(f"{path} needs a route, or a docstring that says what starts the function")
    routes.sort(key=lambda route: (route.path, route.method))
    return Function(path.parent.name, path.stem, trigger, _summary(named), tuple(routes))


def _summary(handler: ast.FunctionDef) -> str:
    """The first paragraph of the docstring."""
    docstring = ast.get_docstring(handler)
    if docstring is None:
        raise Undeclared(f"{handler.name} needs a docstring")
    return sentence(" ".join(docstring.partition("\n\n")[0].split()))


def _declared(handler: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    """Method and path of the decorators `@app.get("/path")` and `@app.route("/path", method="HEAD")`."""
    for decorator in handler.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).startswith("app."):
            verb = ast.unparse(decorator.func).removeprefix("app.")
            path, *_ = (ast.literal_eval(one) for one in decorator.args)
            named = {keyword.arg: ast.literal_eval(keyword.value) for keyword in decorator.keywords}
            yield named["method"] if verb == "route" else verb.upper(), _path(path)


def _path(pattern: str) -> str:
    """A path as the template spells it: `<team_id>` is `{teamId}`, and `.+` is `{proxy+}`, the rest of the path."""

    def named(match: re.Match[str]) -> str:
        words = camel_case(match[1])
        return "{" + _PLACEHOLDERS.get(match[1], words[0].lower() + words[1:]) + "}"

    return re.sub(r"<(\w+)>", named, pattern).replace(".+", "{proxy+}")
