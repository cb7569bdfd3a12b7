"""Functions of an integrator that replace Larder's own, in the module that the option `extensions` names.

The functions have fixed names: HOOKS lists them. Larder's own applies where the module lacks one. A function may
be `async def`.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from larder.settings import SettingsError, environment_name, settings

RequestContext = Mapping[str, Any]
"""`ctx`: `method`, `path` and `headers` of the request. Header names are in lower case."""

_BY_POSITION = ("data", "request")
"""The arguments of the functions that deliver mail. They are passed by position."""

HOOKS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "generate_key": (("length", "prefix"),),
    "validate_key": (("key", "ctx"), ("key",)),
    "default_key_permissions": (("user_id", "ctx"), ("user_id",)),
    "find_api_key": (("headers", "ctx"), ("ctx",), ("headers",)),
    "hash_password": (("password",),),
    "verify_password": (("hash", "password"),),
    "on_password_reset": (_BY_POSITION,),
    "send_verification_email": (_BY_POSITION,),
    "send_reset_password": (_BY_POSITION,),
    "send_team_invitation": (_BY_POSITION,),
}
"""The arguments of each function, by name. If there are several forms, the first that fits is used."""


class Hook:
    """A function of the module. Call it with all its arguments, by name: it gets those that it accepts."""

    def __init__(self, name: str, function: Callable[..., Any], form: tuple[str, ...]) -> None:
        self.name = name
        self._function = function
        self._form = form

    def __call__(self, **arguments: Any) -> Any:
        passed = {name: arguments[name] for name in self._form}
        if self._form == _BY_POSITION:
            return _settled(self._function(*passed.values()))
        return _settled(self._function(**passed))

    def refused(self, rule: str) -> SettingsError:
        """The error for a wrong result. `rule` completes the message "the function ...": "must return a text"."""
        return _refused(self.name, rule)


def hook(name: str) -> Hook | None:
    """The function of this name, or None if Larder's own applies. Raises SettingsError if it cannot be called."""
    module = settings().extensions
    return _hook(module, name) if module else None


def clear_hooks() -> None:
    """Clear the cache of loaded functions."""
    _hook.cache_clear()


@cache
def _hook(module: str, name: str) -> Hook | None:
    try:
        function: Any = getattr(import_module(module), name, None)
    except (ImportError, ValueError) as error:
        rule = f"cannot be imported: {error}. Add a layer that has it, or for a command put its folder on PYTHONPATH"
        raise _refused(module, rule) from error
    if function is None:
        return None
    if not callable(function):
        raise _refused(f"{module}.{name}", "is not a function")
    form = next((form for form in HOOKS[name] if _takes(function, form)), None)
    if form is None:
        wanted = " or ".join(f"({', '.join(form)})" for form in HOOKS[name])
        raise _refused(f"{module}.{name}", f"must be a function that takes {wanted}")
    return Hook(f"{module}.{name}", function, form)


def _refused(what: str, rule: str) -> SettingsError:
    return SettingsError(f"{environment_name('extensions')}: {what} {rule}")


def _takes(function: Callable[..., Any], form: tuple[str, ...]) -> bool:
    try:
        signature = inspect.signature(function)
        if form == _BY_POSITION:
            signature.bind(*form)
        else:
            signature.bind(**dict.fromkeys(form))
    except (TypeError, ValueError):
        # A function that is not written in Python may have no signature: a ValueError.
        return False
    return True


def _settled(result: Any) -> Any:
    if not inspect.isawaitable(result):
        return result
    # Imported here, because every function imports this module and few need asyncio.
    import asyncio

    return asyncio.run(_awaited(result))


async def _awaited(result: Awaitable[Any]) -> Any:
    return await result
