"""The generated files: the document in docs/, and the methods of each path for the function that handles requests
without a route. functions/pages has a link to the document, in place of which `make build` puts a compact copy.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

from larder.settings import settings
from local.template import load_template
from tools.generate.text import json_lines
from tools.openapi.document import ROOT, is_operation, make_document


@cache
def document() -> dict[str, Any]:
    """The document with the template's defaults, regardless of the environment."""
    template = load_template(environ={})
    before = dict(os.environ)
    os.environ.update(template.environment)
    settings.cache_clear()
    sys.path.insert(0, str(ROOT / "functions"))
    try:
        return make_document(template)
    finally:
        sys.path.remove(str(ROOT / "functions"))
        os.environ.clear()
        os.environ.update(before)
        settings.cache_clear()


def files() -> dict[Path, str]:
    """The text of each generated file."""
    return {
        ROOT / "docs" / "openapi.json": json_lines(document(), depth=3),
        ROOT / "functions" / "pages" / "routes.json": json_lines(methods_by_path(), depth=1),
    }


def methods_by_path() -> dict[str, list[str]]:
    """The methods of every path, including those of greedy routes such as `/api/auth/{proxy+}`."""
    routes = load_template(environ={}).routes
    found: dict[str, list[str]] = {}
    for one in sorted(filter(is_operation, routes), key=lambda route: route.path):
        found.setdefault(one.path, []).append(one.method)
    for greedy in (route for route in routes if route.path.endswith("+}")):
        for path, methods in found.items():
            if path.startswith(greedy.path.partition("{")[0]):
                methods.append(greedy.method)
    return {path: sorted(methods) for path, methods in found.items()}


def write() -> None:
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")


def differing() -> list[Path]:
    """The files that `write` would change."""
    return [
        path.relative_to(ROOT)
        for path, text in files().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
