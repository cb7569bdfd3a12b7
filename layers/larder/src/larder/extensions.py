"""Functions that an integrator adds in a layer, and names in options as `module:function`.

A function may be `async def`. Each option fixes the arguments that its function gets. Some arguments are optional.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from larder.settings import SettingsError, environment_name, settings

RequestContext = Mapping[str, Any]
"""`ctx`: `method`, `path` and `headers` of the request. Header names are in lower case."""

_ARGUMENTS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "key_generator": (("length", "prefix"),),
    "key_validator": (("key", "ctx"), ("key",)),
    "default_key_permissions": (("user_id", "ctx"), ("user_id",)),
    "api_key_getter": (("headers", "ctx"), ("ctx",), ("headers",)),
    "password_hash": (("password",),),
    "password_verify": (("hash", "password"),),
}
"""The arguments of each option's function, by name. If there are several forms, the first that fits is used."""

_BY_POSITION = ("data", "request")
"""The arguments of the functions that deliver mail. They are passed by position."""


def load(option: str) -> Callable[..., Any]:
    """Return the function that an option names. Call it with every argument of the option, by name.

    The result drops arguments that the function does not accept, and awaits an awaitable result. Raises SettingsError
    if the option does not name a function, or the function does not accept these arguments.
    """
    name: str = getattr(settings(), option)
    try:
        return _load(option, name)
    except SettingsError as error:
        raise SettingsError(f"{environment_name(option)}: {name!r} {error}") from error


def clear_functions() -> None:
    """Clear the cache of loaded functions."""
    _load.cache_clear()


@cache
def _load(option: str, name: str) -> Callable[..., Any]:
    module_name, _, function_name = name.partition(":")
    try:
        function: Any = getattr(import_module(module_name), function_name)
    except (ImportError, AttributeError, ValueError) as error:
        raise SettingsError(f"does not name a function: {error}") from error
    if not callable(function):
        raise SettingsError("is not a function")
    by_name = option in _ARGUMENTS
    forms = _ARGUMENTS.get(option, (_BY_POSITION,))
    form = next((form for form in forms if _takes(function, form, by_name=by_name)), None)
    if form is None:
        wanted = " or ".join(f"({', '.join(form)})" for form in forms)
        raise SettingsError(f"must be a function that takes {wanted}")

    def call(**arguments: Any) -> Any:
        passed = {name: arguments[name] for name in form}
        return _result_of(function(**passed) if by_name else function(*passed.values()))

    return call


def _takes(function: Callable[..., Any], form: tuple[str, ...], *, by_name: bool) -> bool:
    try:
        signature = inspect.signature(function)
        if by_name:
            signature.bind(**dict.fromkeys(form))
        else:
            signature.bind(*form)
    except (TypeError, ValueError):
        # A function that is not written in Python may have no signature: a ValueError.
        return False
    return True


def _result_of(result: Any) -> Any:
    if not inspect.isawaitable(result):
        return result
    # Imported here, because every function imports this module and few need asyncio.
    import asyncio

    return asyncio.run(_awaited(result))


async def _awaited(result: Awaitable[Any]) -> Any:
    return await result
