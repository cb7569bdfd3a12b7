"""Find the route for a request."""

from __future__ import annotations

import re

from local.template import DEFAULT_PATH, Function, Route

_OfMethod = tuple[dict[str, Route], list[tuple[re.Pattern[str], Route]]]
"""The routes without parameters by their path, and the others."""

_PARAMETER = re.compile(r"\{(\w+\+?)\}")


class Routes:
    """The template's routes.

    As in the cloud, a path without parameters comes first, then one with parameters, then `{proxy+}`, then `$default`.
    """

    def __init__(self, routes: list[Route]) -> None:
        fixed_first = sorted(routes, key=_generality)
        self._routes = [(_pattern(route.path), route) for route in fixed_first]
        self._default = next((route for route in routes if route.path == DEFAULT_PATH), None)
        self._of_methods: dict[str, _OfMethod] = {}

    def find(self, method: str, raw_path: str) -> tuple[Function, str, dict[str, str]] | None:
        """The function, the route's key (`GET /v8/...`), and the path parameters, not decoded."""
        fixed, patterns = self._of_methods.get(method) or self._add_method(method)
        if found := fixed.get(raw_path):
            return found.function, found.key, {}
        for pattern, route in patterns:
            match = pattern.fullmatch(raw_path)
            if match:
                return route.function, route.key, match.groupdict()
        return None if self._default is None else (self._default.function, DEFAULT_PATH, {})

    def _add_method(self, method: str) -> _OfMethod:
        """Sort out the routes of a method at its first request. The server refuses unknown methods."""
        matching = [pair for pair in self._routes if pair[1].method in (method, "ANY")]
        fixed: dict[str, Route] = {}
        for _, route in matching:
            if not _PARAMETER.search(route.path):
                fixed.setdefault(route.path, route)
        patterns = [pair for pair in matching if _PARAMETER.search(pair[1].path)]
        self._of_methods[method] = fixed, patterns
        return fixed, patterns


def _generality(route: Route) -> tuple[bool, int]:
    return "+}" in route.path, len(_PARAMETER.findall(route.path))


def _pattern(path: str) -> re.Pattern[str]:
    parts = _PARAMETER.split(path)
    # re.split returns text and parameter names in turn.
    return re.compile(
        "".join(
            _parameter(part) if number % 2 else re.escape(part) for number, part in enumerate(parts)
        )
    )


def _parameter(name: str) -> str:
    return f"(?P<{name[:-1]}>.+)" if name.endswith("+") else f"(?P<{name}>[^/]+)"
