"""Functions of the integrator's own, named by options as `module:function` and brought by a layer of theirs."""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from larder.settings import SettingsError


@cache
def load(name: str) -> Callable[..., Any]:
    """The function that an option names. Raises SettingsError when it cannot be had."""
    module_name, _, function_name = name.partition(":")
    try:
        function: Any = getattr(import_module(module_name), function_name)
    except (ImportError, AttributeError, ValueError) as error:
        raise SettingsError(f"{name!r} names no function of a module: {error}") from error
    if not callable(function):
        raise SettingsError(f"{name!r} is no function")
    loaded: Callable[..., Any] = function
    return loaded
