"""Functions of the deployment's own, named by options as `module:function` and brought by a layer of theirs.

A function may be `async def`. What it is called with is fixed for each option; some arguments it may leave out.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from larder.settings import SettingsError, environment_name, settings

RequestContext = Mapping[str, Any]
"""`ctx`: `method`, `path` and `headers`, by lower-case name, of the request that a function is called for."""

_ARGUMENTS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "key_generator": (("length", "prefix"),),
    "key_validator": (("key", "ctx"), ("key",)),
    "default_key_permissions": (("user_id", "ctx"), ("user_id",)),
    "api_key_getter": (("headers", "ctx"), ("ctx",), ("headers",)),
    "password_hash": (("password",),),
    "password_verify": (("hash", "password"),),
}
"""The arguments of each option's function, by name. Of several forms, the first that the function takes counts."""

_BY_POSITION = ("data", "request")
"""The arguments of the functions that deliver mail, whatever these call them."""


def load(option: str) -> Callable[..., Any]:
    """The function that an option names. Call it with every argument of the option, by name.

    It drops arguments that the function leaves out, and waits for a result that has to be awaited. Raises
    SettingsError when the option names no function, or one that cannot be called with these arguments.
    """
    name: str = getattr(settings(), option)
    try:
        return _load(option, name)
    except SettingsError as error:
        raise SettingsError(f"{environment_name(option)}: {name!r} {error}") from error


def forget_functions() -> None:
    """Forget the functions that were loaded."""
    _load.cache_clear()


@cache
def _load(option: str, name: str) -> Callable[..., Any]:
    module_name, _, function_name = name.partition(":")
    try:
        function: Any = getattr(import_module(module_name), function_name)
    except (ImportError, AttributeError, ValueError) as error:
        raise SettingsError(f"names no function of a module: {error}") from error
    if not callable(function):
        raise SettingsError("is no function")
    by_name = option in _ARGUMENTS
    forms = _ARGUMENTS.get(option, (_BY_POSITION,))
    form = next((form for form in forms if _takes(function, form, by_name=by_name)), None)
    if form is None:
        wanted = " or ".join(f"({', '.join(form)})" for form in forms)
        raise SettingsError(f"must be a function that takes {wanted}")

    def call(**arguments: Any) -> Any:
        passed = {name: arguments[name] for name in form}
        return _settled(function(**passed) if by_name else function(*passed.values()))

    return call


def _takes(function: Callable[..., Any], form: tuple[str, ...], *, by_name: bool) -> bool:
    try:
        signature = inspect.signature(function)
        if by_name:
            signature.bind(**dict.fromkeys(form))
        else:
            signature.bind(*form)
    except (TypeError, ValueError):
        # A ValueError is for a function, not written in Python, that does not say what it takes.
        return False
    return True


def _settled(result: Any) -> Any:
    if not inspect.isawaitable(result):
        return result
    # Imported when it is needed: every function imports this module.
    import asyncio

    return asyncio.run(_awaited(result))


async def _awaited(result: Awaitable[Any]) -> Any:
    return await result
