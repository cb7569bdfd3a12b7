"""Services speak of the domain: the names of HTTP, of the APIs and of the command line are at the edges."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import larder
from larder import errors
from larder.errors import LarderError

LAYER = Path(larder.__file__).parent
DOMAIN = sorted(path for path in LAYER.rglob("*.py") if "web" not in path.relative_to(LAYER).parts)

OF_AN_EDGE = re.compile(
    r"\b[a-z]+[A-Z]\w*"  # a field of a body or query: userId
    r"|\b[A-Z][a-z]+-[A-Z][a-z]+|\bx-[a-z]"  # a header: Retry-After
    r"|(?<!\w)--[a-z]"  # an option of the command line
    r"|(?<!\w)/[a-z]"  # a path
    r"|\b[45]\d\d\b"  # a status
)

CHECKS = re.compile(r"_?(?:check|parse)_")
"""Functions that get the name of the field that their error names."""


def texts(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str | int):
            yield str(inner.value)


def raised_texts(module: ast.Module) -> Iterator[str]:
    """The literals in what the module raises, and in the names of fields that it passes to checks."""
    for node in ast.walk(module):
        if isinstance(node, ast.Raise) or (isinstance(node, ast.Call) and CHECKS.match(getattr(node.func, "id", ""))):
            yield from texts(node)


def messages() -> Iterator[str]:
    """The literals of larder.errors, except docstrings."""
    for node in ast.walk(ast.parse(Path(errors.__file__).read_text())):
        if isinstance(node, ast.Assign | ast.FunctionDef):
            yield from texts(node)


@pytest.mark.parametrize("path", DOMAIN, ids=lambda path: str(path.relative_to(LAYER)))
def test_what_a_service_raises_has_no_names_of_http_or_the_command_line(path: Path) -> None:
    assert [t for t in raised_texts(ast.parse(path.read_text())) if OF_AN_EDGE.search(t)] == []


def test_messages_have_no_names_of_http_or_the_command_line() -> None:
    assert [text for text in messages() if OF_AN_EDGE.search(text)] == []


def test_errors_do_not_know_their_reply() -> None:
    classes = [var for var in vars(errors).values() if isinstance(var, type)]
    assert LarderError in classes
    for error in classes:
        assert not {"status", "code", "headers"} & vars(error).keys(), error


def test_names_of_the_edges_are_found() -> None:
    raised = """
raise InvalidValue("userId", "is unknown")
raise Refused("Send Retry-After")
raise Refused("give --user")
raise Refused("see /openapi.json")
raise Refused(404)
_check_number("refillAmount", 1)
"""
    found = [text for text in raised_texts(ast.parse(raised)) if OF_AN_EDGE.search(text)]
    assert sorted(found) == sorted(
        ["userId", "Send Retry-After", "give --user", "see /openapi.json", "404", "refillAmount"]
    )
