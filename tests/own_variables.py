"""Hides the environment variables that a function does not have while it runs."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock

from larder.settings import environment_name, settings
from tests.default_template import template

_OF_ONE_MACHINE = frozenset({b"LARDER_EDGE_KEY"})
"""Not an option: no stack has it, and all functions of a local cloud or of the tests do."""

_lock = Lock()
_running: list[frozenset[bytes]] = []
_hidden: dict[bytes, bytes] = {}

_environ: dict[bytes, bytes] = vars(os.environ)["_data"]
"""What `os.environ` shows, encoded. It would also set and unset each variable for C, twice for every request."""


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
    shown = _OF_ONE_MACHINE.union(*_running)
    for name in [name for name in _hidden if name in shown or not _running]:
        _environ.setdefault(name, _hidden.pop(name))
    if _running:
        for name in [name for name in _environ if name.startswith(b"LARDER_")]:
            if name not in shown:
                _hidden[name] = _environ.pop(name)
    settings.cache_clear()


def variable(option: str) -> str:
    """The variable of an option of the deployment, also while a function runs that does not have it."""
    name = environment_name(option)
    with _lock:
        return os.environ.get(name) or os.fsdecode(_hidden.get(os.fsencode(name), b""))


@cache
def _variables() -> dict[str, frozenset[bytes]]:
    functions = template().functions
    return {function.handler: frozenset(map(os.fsencode, function.variables)) for function in functions}
