"""Hides the environment variables that a function does not have while it runs."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock

from larder.settings import environment_name, settings
from local.template import load_template

_OF_ONE_MACHINE = {"LARDER_EDGE_KEY"}
"""Not an option: no stack has it, and all functions of a local cloud or of the tests do."""

_lock = Lock()
_running: list[frozenset[str]] = []
_hidden: dict[str, str] = {}


@contextmanager
def only_its_variables(handler: str) -> Iterator[None]:
    """A context without the variables of options that the function of this handler does not have.

    Functions that run at the same time share the environment of this process, so each sees the variables of all.
    """
    own = _variables()[handler]
    with _lock:
        _running.append(own)
        _hide_others()
    try:
        yield
    finally:
        with _lock:
            _running.remove(own)
            _hide_others()


def _hide_others() -> None:
    shown = frozenset().union(*_running)
    for name in [name for name in _hidden if name in shown or not _running]:
        os.environ.setdefault(name, _hidden.pop(name))
    if _running:
        for name in [name for name in os.environ if name.startswith("LARDER_")]:
            if name not in shown and name not in _OF_ONE_MACHINE:
                _hidden[name] = os.environ.pop(name)
    settings.cache_clear()


def variable(option: str) -> str:
    """The variable of an option of the deployment, also while a function runs that does not have it."""
    name = environment_name(option)
    with _lock:
        return os.environ.get(name) or _hidden.get(name, "")


@cache
def _variables() -> dict[str, frozenset[str]]:
    return {one.handler: one.variables for one in load_template(environ={}).functions}
