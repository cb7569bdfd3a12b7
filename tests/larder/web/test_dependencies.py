"""Dependencies in the signatures of handlers."""

from collections.abc import Callable, Iterator
from importlib import import_module
from inspect import unwrap
from typing import Annotated, Any, get_args, get_type_hints

import pytest
from aws_lambda_powertools.event_handler import Request
from aws_lambda_powertools.event_handler.depends import Depends

from larder.errors import Unauthenticated
from larder.web.dependencies import with_dependencies
from tests.default_template import template

REQUEST = Request("/things/{name}", {"name": "one"}, current_event=None)  # type: ignore[arg-type]
made: list[str] = []


@pytest.fixture(autouse=True)
def nothing_made() -> None:
    made.clear()


def token(request: Request) -> str:
    made.append("token")
    return f"token of {request.route}"


Token = Annotated[str, Depends(token)]


def caller(token: Token, request: Request) -> str:
    made.append("caller")
    return f"{token}, caller of {request.path_parameters['name']}"


def refused(_token: Token) -> str:
    raise Unauthenticated


def test_a_dependency_gets_the_request_and_its_own_dependencies() -> None:
    def handler(caller: Annotated[str, Depends(caller)], name: str) -> str:
        return f"{name}: {caller}"

    said = with_dependencies(handler)(request=REQUEST, name="one")
    assert said == "one: token of /things/{name}, caller of one"


def test_a_shared_dependency_is_created_once_per_request() -> None:
    def handler(token: Token, caller: Annotated[str, Depends(caller)]) -> None: ...

    handler_of_powertools = with_dependencies(handler)
    handler_of_powertools(request=REQUEST)
    assert made == ["token", "caller"]
    handler_of_powertools(request=REQUEST)
    assert made == ["token", "caller"] * 2


def test_dependencies_are_created_in_signature_order_and_stop_at_a_refusal() -> None:
    def handler(_refused: Annotated[str, Depends(refused)], _caller: Annotated[str, Depends(caller)]) -> None: ...

    with pytest.raises(Unauthenticated):
        with_dependencies(handler)(request=REQUEST)
    assert made == ["token"]


def test_a_path_parameter_with_a_dependency_gets_its_value() -> None:
    def handler(name: Annotated[str, Depends(token)]) -> str:
        return name

    assert with_dependencies(handler)(request=REQUEST, name="one") == "token of /things/{name}"


def test_powertools_sees_no_dependencies() -> None:
    def handler(_token: Token, request: Request) -> Any:
        return request

    wrapped = with_dependencies(handler)
    assert wrapped.__annotations__ == {"request": Request}
    assert wrapped(request=REQUEST) is REQUEST


def injected(function: Callable[..., Any]) -> Iterator[tuple[Any, Callable[..., Any]]]:
    """The type and the dependency of each parameter, also of the dependencies."""
    for hint in get_type_hints(function, include_extras=True).values():
        given, *more = get_args(hint) or (hint,)
        for one in more:
            if isinstance(one, Depends):
                yield given, one.dependency
                yield from injected(one.dependency)


def test_signatures_name_the_types_that_dependencies_return() -> None:
    modules = {function.handler.rpartition(".")[0] for function in template().functions}
    apps = [app for name in modules if (app := getattr(import_module(name), "app", None))]
    found = [
        one
        for app in apps
        for route in app._static_routes + app._dynamic_routes
        for one in injected(unwrap(route.func))
    ]
    assert len(found) > len(apps)
    for given, dependency in found:
        assert given == get_type_hints(dependency)["return"], dependency
