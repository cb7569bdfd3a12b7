"""Find the route for a request."""

from __future__ import annotations

import re

from local.template import DEFAULT_PATH, Function, Route

_PARAMETER = re.compile(r"\{(\w+\+?)\}")


class Routes:
    """The template's routes.

    As in the cloud, a path without parameters comes first, then one with parameters, then `{proxy+}`, then `$default`.
    """

    def __init__(self, routes: list[Route]) -> None:
        fixed_first = sorted(routes, key=_generality)
        self._routes = [(_pattern(route.path), route) for route in fixed_first]
        self._default = next((route for route in routes if route.path == DEFAULT_PATH), None)

    def find(self, method: str, raw_path: str) -> tuple[Function, str, dict[str, str]] | None:
        """The function, the route's key (`GET /v8/...`), and the path parameters, not decoded."""
        for pattern, route in self._routes:
            if route.method not in (method, "ANY"):
                continue
            match = pattern.fullmatch(raw_path)
            if match:
                return route.function, route.key, match.groupdict()
        return None if self._default is None else (self._default.function, DEFAULT_PATH, {})


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
