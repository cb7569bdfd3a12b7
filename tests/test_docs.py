"""The documentation tells what is there: every option, error, endpoint and file that it names."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from larder import errors
from larder.settings import Settings, environment_name
from local.template import load_template

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md")])


def subclasses(error: type[errors.LarderError]) -> list[type[errors.LarderError]]:
    return [error, *(sub for direct in error.__subclasses__() for sub in subclasses(direct))]


ERRORS = subclasses(errors.LarderError)[1:]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
def test_every_error_is_listed_with_its_status_and_code(error: type[errors.LarderError]) -> None:
    assert f"| {error.status} | `{error.code}` |" in (DOCS / "errors.md").read_text()


def test_no_error_has_the_code_on_which_a_client_posts_its_token_elsewhere() -> None:
    assert "forbidden" not in {error.code for error in ERRORS}


@pytest.mark.parametrize("option", [field.name for field in fields(Settings)])
def test_every_option_is_listed(option: str) -> None:
    assert f"`{environment_name(option)}`" in (DOCS / "configuration.md").read_text()


@pytest.mark.parametrize(
    "option",
    [field for field in fields(Settings) if isinstance(field.default, int)],
    ids=lambda field: field.name,
)
def test_every_default_and_bound_is_the_codes_and_the_templates(option: object) -> None:
    name, default = option.name, option.default  # type: ignore[attr-defined]
    bounds = option.metadata  # type: ignore[attr-defined]
    parameter = "".join(word.capitalize() for word in name.split("_"))
    row = next(
        line
        for line in (DOCS / "configuration.md").read_text().splitlines()
        if line.startswith(f"| `{parameter}` |")
    )
    limits = (
        f"from {bounds['min']}" if bounds["max"] is None else f"{bounds['min']} to {bounds['max']}"
    )
    if isinstance(default, bool):
        default, limits = str(default).lower(), "true or false"
    assert f"| {default} | {limits} |" in row
    assert load_template(environ={}).environment[environment_name(name)] == str(default)


@pytest.mark.parametrize(
    "function", load_template(environ={}).functions, ids=lambda function: function.logical_id
)
def test_every_function_is_on_the_map_of_the_architecture(function: object) -> None:
    domain, module, _ = function.handler.split(".")  # type: ignore[attr-defined]
    assert f"../functions/{domain}/{module}.py" in (DOCS / "architecture.md").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def anchors(page: Path) -> set[str]:
    """What a link to a heading of the page may name, as GitHub makes it of the heading."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_headings_lead_to_one(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text()):
        assert anchor in anchors(page.parent / target if target else page), f"{target}#{anchor}"
