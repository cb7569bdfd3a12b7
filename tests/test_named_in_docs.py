"""Commands, routes, targets of make and files that pages name exist."""

import re
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from larder_cli.main import cli
from tests.default_template import template

ROOT = Path(__file__).parent.parent
PAGES = [
    page
    for page in sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")])
    # The changelog names what was, and the example of CONTRIBUTING what could be.
    if page.name not in ("CHANGELOG.md", "CONTRIBUTING.md")
]
ROUTES = [
    re.compile(f"{route.method} (/api/auth)?{re.sub(r'{[^}]+}', '[^/]+', route.path.removeprefix('/api/auth'))}")
    for route in template().routes
]
TARGETS = set(
    re.findall(
        r"^([a-z][\w-]*):", "".join((ROOT / name).read_text() for name in ("Makefile", "tools/more.mk")), re.MULTILINE
    )
)


def is_command(line: str) -> bool:
    """Whether `larder` has the commands and options of a line."""
    at: click.Command = cli
    known = {"--help", "--version"}
    known |= {name for option in at.params for name in option.opts}
    takes_value = False
    for word in re.sub(r"[\[\]|]", " ", line).split()[1:]:
        if word in ("--", "...", "\\"):
            break
        if word.startswith("--"):
            name = word.partition("=")[0]
            if name not in known:
                return False
        elif isinstance(at, click.Group) and re.fullmatch(r"[a-z]+(-[a-z]+)*", word) and not takes_value:
            if word not in at.commands:
                return False
            at = at.commands[word]
            known |= {name for option in at.params for name in [*option.opts, *option.secondary_opts]}
        takes_value = word.startswith("--") and "=" not in word and at is cli
    return True


def is_route(line: str) -> bool:
    return any(route.fullmatch(line) for route in ROUTES)


FORMS: dict[str, tuple[str, Callable[[str], bool]]] = {
    "command": (r"(?:^|`|\$ |&& )(larder(?: [^`\n#&;>]+)?)", is_command),
    "route": (r"`((?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) /[\w{}/.-]+)`", is_route),
    "target": (r"(?:^|`)make ([a-z][a-z-]+)", TARGETS.__contains__),
    "file": (
        r"`((?:clients|deploy|docs|events|functions|layers|local|tests|tools)/[\w./-]+)`",
        lambda name: (ROOT / name).exists(),
    ),
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
@pytest.mark.parametrize("form", FORMS)
def test_what_a_page_names_exists(page: Path, form: str) -> None:
    pattern, exists = FORMS[form]
    named = re.findall(pattern, page.read_text(), re.MULTILINE)
    assert [name for name in named if not exists(name)] == []


def test_what_does_not_exist_is_found() -> None:
    assert is_command("larder keys create --user ada@acme.example --team acme")
    for line in ("larder kyes list", "larder keys crate", "larder keys create --usr ada"):
        assert not is_command(line)
    assert not is_route("GET /api/auth/api-key/count")
