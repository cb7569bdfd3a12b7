"""Dependency injection for handlers: computes the values of `Depends`, each once per request.

Powertools can do the same, but reads the annotations of every dependency on every request. That takes longer than a
call to AWS (docs/decisions/cold-starts.md). Here signatures are read once.
"""

from collections.abc import Callable, Mapping
from functools import cache, wraps
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

from larder.web.powertools.resolver import Depends, Request

_Function = Callable[..., Any]


class _Needs(NamedTuple):
    """From a function's signature: the parameters that take the request, and the dependencies by parameter."""

    request: tuple[str, ...]
    dependencies: tuple[tuple[str, _Function], ...]


def with_dependencies(function: _Function) -> _Function:
    """Wrap a handler for Powertools, which calls it with the request and the parameters of the path."""

    @wraps(function)
    def handler(request: Request, **parameters: Any) -> Any:
        # A dependency can parse a parameter of the path. Its value replaces the text.
        return function(**{**parameters, **_arguments(function, request, {})})

    # Powertools reads these annotations instead of the function's own, so it resolves nothing itself.
    handler.__annotations__ = {"request": Request}
    return handler


def _arguments(
    function: _Function, request: Request, made: dict[_Function, object]
) -> dict[str, Any]:
    needs = _needs(function)
    arguments: dict[str, Any] = dict.fromkeys(needs.request, request)
    for name, dependency in needs.dependencies:
        if dependency not in made:
            made[dependency] = dependency(**_arguments(dependency, request, made))
        arguments[name] = made[dependency]
    return arguments


@cache
def _needs(function: _Function) -> _Needs:
    hints: Mapping[str, Any] = get_type_hints(function, include_extras=True)
    return _Needs(
        request=tuple(name for name, hint in hints.items() if hint is Request),
        dependencies=tuple(
            (name, found.dependency)
            for name, hint in hints.items()
            if name != "return" and (found := _depends(hint)) is not None
        ),
    )


def _depends(hint: Any) -> Depends | None:
    if get_origin(hint) is not Annotated:
        return None
    return next((more for more in get_args(hint)[1:] if isinstance(more, Depends)), None)
