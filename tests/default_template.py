"""The template with its own defaults, read once: that takes longer than most tests."""

from functools import cache

from local.template import Template, load_template


@cache
def template() -> Template:
    """Independent of environment variables. Tests must not change it."""
    return load_template(environ={})
