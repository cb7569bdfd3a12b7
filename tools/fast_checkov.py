"""checkov in half of its time. For each reference in a template it builds the same parser of JSON paths again."""

import sys
from typing import Any

import ply.yacc
from checkov.main import Checkov

_build = ply.yacc.yacc
_built: dict[str, Any] = {}


def _parser(**options: Any) -> Any:
    name = options["tabmodule"]
    if name not in _built:
        _built[name] = _build(**options)
    return _built[name]


ply.yacc.yacc = _parser
sys.exit(Checkov().run())
