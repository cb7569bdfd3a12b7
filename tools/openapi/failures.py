"""The errors that a function can raise, found in its code and in the code of every function of Larder that it names."""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import FunctionType, ModuleType
from typing import Any

from larder import errors
from larder.errors import LarderError
from larder.tables import Table
from larder.web.declared import Body, Parameter

Errors = frozenset[type[LarderError]]

_OURS = ("larder.", "accounts.", "api_keys.", "artifacts.", "pages.", "teams.", "usage.")
_TO_DYNAMODB_OR_S3 = "larder.aws"


def raised_by(function: Callable[..., Any]) -> Errors:
    """The errors that can leave the function. Every branch counts, so there can be too many, but not too few."""
    return _raised_by(_plain(function))


def _plain(function: Callable[..., Any]) -> FunctionType:
    unwrapped = inspect.unwrap(function)
    assert isinstance(unwrapped, FunctionType), function
    return unwrapped


_known: dict[FunctionType, Errors] = {}


def _raised_by(function: FunctionType) -> Errors:
    if function not in _known:
        # Ends recursion: a function that calls itself adds no errors of its own.
        _known[function] = frozenset()
        tree = _tree(function)
        if tree is not None:
            _known[function] = _of_body(tree.body, _Names(function, tree))
    return _known[function]


@cache
def _tree(function: FunctionType) -> ast.FunctionDef | None:
    try:
        module = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError):
        return None
    (tree,) = module.body
    return tree if isinstance(tree, ast.FunctionDef) else None


class _Names:
    """Resolves the names in a function."""

    def __init__(self, function: FunctionType, tree: ast.FunctionDef) -> None:
        self._globals: Mapping[str, Any] = function.__globals__
        self._imported = dict(_imports(tree))
        closure = inspect.getclosurevars(function).nonlocals
        self._imported.update(closure)

    def of(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Name):
            return self._imported.get(node.id, self._globals.get(node.id))
        if isinstance(node, ast.Attribute):
            base = self.of(node.value)
            if isinstance(base, ModuleType | type):
                return getattr(base, node.attr, None)
        return None


def _imports(tree: ast.FunctionDef) -> Iterator[tuple[str, Any]]:
    """The imports inside the function, which keep cold starts of other callers short."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("larder"):
            name = str(node.module)
            module = importlib.import_module(name)
            for alias in node.names:
                if not hasattr(module, alias.name):
                    importlib.import_module(f"{name}.{alias.name}")
                yield alias.asname or alias.name, getattr(module, alias.name)


def _of_body(body: list[ast.stmt] | list[ast.expr], names: _Names) -> Errors:
    found: set[type[LarderError]] = set()
    for node in body:
        found |= _of_node(node, names)
    return frozenset(found)


def _of_node(node: ast.AST, names: _Names) -> Errors:
    if isinstance(node, ast.Try):
        return _of_try(node, names)
    if isinstance(node, ast.With):
        return _of_with(node, names)
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass"):
        return frozenset()
    if isinstance(node, ast.Name | ast.Attribute):
        named = _of_name(names.of(node))
        inner = _of_node(node.value, names) if isinstance(node, ast.Attribute) else None
        return named | (inner or frozenset())
    if isinstance(node, ast.arguments):
        return frozenset()
    if isinstance(node, ast.AnnAssign):
        return _of_node(node.value, names) if node.value else frozenset()
    found: frozenset[type[LarderError]] = frozenset()
    for child in ast.iter_child_nodes(node):
        found |= _of_node(child, names)
    return found


def _of_name(named: Any) -> Errors:
    if isinstance(named, Parameter | Body):
        named = named.parse
    if isinstance(named, Table):
        # Each read and write of a table can fail in the client, whose code is not followed.
        return frozenset({errors.TryAgain})
    if isinstance(named, type) and issubclass(named, LarderError):
        return frozenset({named})
    if isinstance(named, Mapping):
        return frozenset(
            value
            for value in named.values()
            if isinstance(value, type) and issubclass(value, LarderError)
        )
    if isinstance(named, type) or not callable(named):
        return frozenset()
    function = inspect.unwrap(named)
    if not isinstance(function, FunctionType) or not function.__module__.startswith(_OURS):
        return frozenset()
    if function.__module__ == _TO_DYNAMODB_OR_S3:
        # Every call of a client can fail in the client, whose code is not followed.
        return frozenset({errors.TryAgain}) | _raised_by(function)
    return _raised_by(function)


def _of_try(node: ast.Try, names: _Names) -> Errors:
    tried = _of_body(node.body, names)
    left, found = tried, frozenset[type[LarderError]]()
    for handler in node.handlers:
        caught = _caught(handler.type, names)
        taken = frozenset(error for error in left if issubclass(error, caught))
        left -= taken
        if any(isinstance(one, ast.Raise) and one.exc is None for one in ast.walk(handler)):
            found |= taken
        found |= _of_body(handler.body, names)
    return left | found | _of_body(node.orelse + node.finalbody, names)


def _of_with(node: ast.With, names: _Names) -> Errors:
    inside = _of_body(node.body, names)
    for item in node.items:
        call = item.context_expr
        if isinstance(call, ast.Call) and getattr(call.func, "id", None) == "suppress":
            suppressed = tuple(filter(None, (names.of(one) for one in call.args)))
            inside = frozenset(error for error in inside if not issubclass(error, suppressed))
        else:
            inside |= _of_node(call, names)
    return inside


def _caught(node: ast.expr | None, names: _Names) -> tuple[type[BaseException], ...]:
    if node is None:
        return (BaseException,)
    each = node.elts if isinstance(node, ast.Tuple) else [node]
    found = [names.of(one) or _builtin(one) for one in each]
    return tuple(one for one in found if isinstance(one, type))


def _builtin(node: ast.expr) -> Any:
    return getattr(importlib.import_module("builtins"), getattr(node, "id", ""), None)
