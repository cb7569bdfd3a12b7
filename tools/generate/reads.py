"""The options that each function can read, found in the code without running it.

From the module of a function, this follows each name to the definition that it refers to, in the layer and in
functions/. The function can read every option whose name appears in one of these definitions as an attribute, such as
`settings().retention_days`, or as an argument, such as `environment_name("base_url")`. So a function may get an option
that it never reads, but not the other way around. Names that are put together when the code runs are not found: the
tests of the functions have only these variables, and fail.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path

from larder.settings import Settings

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDERS = (ROOT / "layers" / "larder" / "src", ROOT / "functions")

_OPTIONS = [option.name for option in fields(Settings)]
_SETTINGS = "larder.settings"

Place = tuple[str, str]
"""A name in a module. The name is empty for the module itself."""


@dataclass(frozen=True, slots=True)
class Reads:
    """What one statement refers to, and the options that it names."""

    places: frozenset[Place]
    options: frozenset[str]


@dataclass(frozen=True, slots=True)
class Module:
    """The definitions of a module by name, and where the names come from that it imports."""

    definitions: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imports: dict[str, Place] = field(default_factory=dict)


def options_of(module: str) -> list[str]:
    """The options that a module such as `artifacts.get_status` can read, in the order of the settings."""
    found: set[str] = set()
    seen: set[Place] = set()
    ahead: list[Place] = [(module, name) for name in _module(module).definitions]
    while ahead:
        place = ahead.pop()
        if place in seen:
            continue
        seen.add(place)
        for reads in _reads(place):
            found |= reads.options
            ahead += reads.places
    return [option for option in _OPTIONS if option in found]


@cache
def _reads(place: Place) -> list[Reads]:
    """What the statements refer to that define a name."""
    module, name = place
    if module == _SETTINGS:
        return []
    parts = _module(module)
    if name in parts.imports and name not in parts.definitions:
        return [Reads(frozenset({parts.imports[name]}), frozenset())]
    return [_read(module, statement) for statement in parts.definitions.get(name, [])]


def _read(module: str, statement: ast.stmt) -> Reads:
    parts = _module(module)
    places: set[Place] = set()
    options: set[str] = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Name):
            if node.id in parts.definitions:
                places.add((module, node.id))
            if node.id in parts.imports:
                places.add(parts.imports[node.id])
        elif isinstance(node, ast.Attribute):
            options |= _named().get(node.attr, frozenset())
            if isinstance(node.value, ast.Name):
                source, name = parts.imports.get(node.value.id, ("", "-"))
                if not name:
                    places.add((source, node.attr))
        elif isinstance(node, ast.Call):
            options |= {text for text in _texts(node) if text in _OPTIONS}
    return Reads(frozenset(places), frozenset(options))


def _texts(call: ast.Call) -> Iterator[str]:
    for argument in [*call.args, *(keyword.value for keyword in call.keywords)]:
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            yield argument.value


@cache
def _named() -> dict[str, frozenset[str]]:
    """The options that an attribute of the settings reads. A property reads others."""
    own = {option: frozenset({option}) for option in _OPTIONS}
    (settings,) = _module(_SETTINGS).definitions[Settings.__name__]
    for method in ast.walk(settings):
        if isinstance(method, ast.FunctionDef) and not method.name.startswith("_"):
            attributes = (node.attr for node in ast.walk(method) if isinstance(node, ast.Attribute))
            own[method.name] = frozenset(attributes) & frozenset(_OPTIONS)
    return own


@cache
def _module(name: str) -> Module:
    parts = Module()
    tree = ast.parse(_sources()[name].read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            parts.imports.update(_imported(node))
    for statement in tree.body:
        for defined in _defined(statement):
            parts.definitions.setdefault(defined, []).append(statement)
    return parts


def _defined(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
    elif isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in targets:
            yield from (node.id for node in ast.walk(target) if isinstance(node, ast.Name))


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, Place]]:
    for alias in node.names:
        known = alias.asname or alias.name
        if isinstance(node, ast.Import):
            if alias.name in _sources():
                yield known, (alias.name, "")
        elif node.module in _sources():
            whole = f"{node.module}.{alias.name}"
            yield known, ((whole, "") if whole in _sources() else (node.module, alias.name))


@cache
def _sources() -> dict[str, Path]:
    found = {}
    for folder in FOLDERS:
        for path in folder.rglob("*.py"):
            name = ".".join(path.relative_to(folder).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = path
    return found
