"""Conditions on the attributes of an item, for writes, queries and scans alike.

    missing("expires_at") | above(expires_at=now)

A condition is a value. `larder.tables` turns it into an expression of DynamoDB for each request.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

Value = str | int | bool


class Attribute(str):
    """Stands for the value of another attribute of the item."""

    __slots__ = ()


class Placeholders:
    """The placeholders for names and values in the expressions of one request.

    Names need them too: a name may be a reserved word of DynamoDB, or contain characters that expressions do not allow.
    """

    __slots__ = ("_renamed", "names", "values")

    def __init__(self, renamed: Mapping[str, str]) -> None:
        self._renamed = renamed
        self.names: dict[str, str] = {}
        """Placeholders by name."""
        self.values: dict[str, Any] = {}
        """Values by placeholder."""

    def name(self, attribute: str) -> str:
        return self._placeholder(self._renamed.get(attribute, attribute))

    def path(self, attribute: str, *inner: str) -> str:
        """An attribute, or an entry inside an attribute that is a map."""
        return ".".join((self.name(attribute), *map(self._placeholder, inner)))

    def value(self, value: Any) -> str:
        if isinstance(value, Attribute):
            return self.name(value)
        placeholder = f":{len(self.values)}"
        self.values[placeholder] = value
        return placeholder

    def _placeholder(self, name: str) -> str:
        return self.names.setdefault(name, f"#{len(self.names)}")


class Condition:
    """`a & b` needs both, `a | b` at least one, and `~a` is the opposite of `a`."""

    __slots__ = ("render",)

    def __init__(self, render: Callable[[Placeholders], str]) -> None:
        self.render = render

    def __and__(self, other: "Condition") -> "Condition":
        return Condition(lambda use: f"{self.render(use)} AND {other.render(use)}")

    def __or__(self, other: "Condition") -> "Condition":
        # AND binds tighter, so only this needs parentheses.
        return Condition(lambda use: f"({self.render(use)} OR {other.render(use)})")

    def __invert__(self) -> "Condition":
        return Condition(lambda use: f"NOT ({self.render(use)})")


def exists(attribute: str) -> Condition:
    """The item has the attribute. With an attribute of the table's key: the item exists."""
    return Condition(lambda use: f"attribute_exists({use.name(attribute)})")


def missing(attribute: str) -> Condition:
    """The item lacks the attribute, or there is no item."""
    return Condition(lambda use: f"attribute_not_exists({use.name(attribute)})")


def equals(**values: Value) -> Condition:
    """Each attribute has this value. A missing attribute meets no comparison, except `not_equals`."""
    return _each("{} = {}", values)


def not_equals(**values: Value) -> Condition:
    """Each attribute has another value, or is missing."""
    return _each("{} <> {}", values)


def below(**values: Value) -> Condition:
    return _each("{} < {}", values)


def at_most(**values: Value) -> Condition:
    return _each("{} <= {}", values)


def at_least(**values: Value) -> Condition:
    return _each("{} >= {}", values)


def above(**values: Value) -> Condition:
    return _each("{} > {}", values)


def begins_with(**values: str) -> Condition:
    return _each("begins_with({}, {})", values)


def size_below(**sizes: int) -> Condition:
    """Each attribute, which is a set, list, map or string, has fewer members or bytes."""
    return _each("size({}) < {}", sizes)


def between(attribute: str, least: Value, most: Value) -> Condition:
    """Includes both ends. DynamoDB rejects a `least` above `most`."""
    return Condition(
        lambda use: f"{use.name(attribute)} BETWEEN {use.value(least)} AND {use.value(most)}"
    )


def one_of(attribute: str, values: Iterable[Value]) -> Condition:
    return Condition(
        lambda use: f"{use.name(attribute)} IN ({', '.join(use.value(value) for value in values)})"
    )


def contains(path: str | tuple[str, ...], member: Value) -> Condition:
    """The set or list contains the member. A tuple is a path into a map: `("permissions", "artifacts")`."""
    steps = (path,) if isinstance(path, str) else path
    return Condition(lambda use: f"contains({use.path(*steps)}, {use.value(member)})")


def _each(form: str, values: Mapping[str, Value]) -> Condition:
    return Condition(
        lambda use: " AND ".join(
            form.format(use.name(name), use.value(value)) for name, value in values.items()
        )
    )
