"""GET /openapi.json"""

from functools import cache
from pathlib import Path

from larder.web.pages import json_handler


@cache
def show_openapi() -> str:
    """Get this document, which `make generate` generates from the handlers."""
    return Path(__file__).with_name("openapi.json").read_text(encoding="utf-8")


handler = json_handler(show_openapi)
