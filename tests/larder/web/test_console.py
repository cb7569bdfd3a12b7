"""The page of the console: what it consists of, and what it may run and ask for."""

import hashlib
import json
import re
from pathlib import Path

import pytest

from larder.web.pages import COMMENTS, script_text
from tests.conftest import SetOption
from tests.page import Page, opened, policy_hash

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "layers/larder/src/larder/web/html/console"
VENDOR = FOLDER / "vendor.js"
OURS = sorted(path for path in FOLDER.glob("*.js") if path != VENDOR)


@pytest.fixture
def page(environment: pytest.MonkeyPatch) -> Page:
    """The one that has all scripts."""
    return opened("/console/t/acme/protection")


def test_only_its_own_style_and_script_run_by_their_hashes(page: Page) -> None:
    (style,), (script,) = page.texts["style"], page.texts["script"]
    assert page.policy["default-src"] == page.policy["form-action"] == ["'none'"]
    assert page.policy["script-src"] == [policy_hash(script)]
    assert page.policy["style-src"] == [policy_hash(style)]
    assert page.policy["connect-src"] == ["'self'"]
    assert page.policy["frame-ancestors"] == page.policy["trusted-types"] == ["'none'"]
    assert re.findall(r"@import|url\(", style) == []
    assert page.reply.headers["referrer-policy"] == "no-referrer"
    assert page.reply.cookies == ()


def test_every_file_is_in_the_page(page: Page) -> None:
    (script,) = page.texts["script"]
    # Without the hashes of what it was made from.
    licences, _, bundled = VENDOR.read_text().partition(" `make vendor-console`")
    assert licences in script
    assert bundled.partition("\n")[2] in script
    for path in OURS:
        assert script_text(f"console/{path.name}") in script, path.name


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_no_line_of_a_text_is_left_out_as_a_comment(path: Path) -> None:
    text = path.read_text()
    for comment in COMMENTS.finditer(text):
        # Outside of template literals.
        assert text[: comment.start()].count("`") % 2 == 0, comment[0]


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_our_own_script_never_writes_markup_or_stores_anything(path: Path) -> None:
    found = re.findall(
        r"(inner|outer)HTML|insertAdjacentHTML|document\.write|dangerouslySet|\beval\b|Function\(|</script|<!--"
        r"|localStorage|sessionStorage|indexedDB|document\.cookie",
        path.read_text(),
    )
    assert found == []


def test_the_first_page_uses_nothing_that_only_the_other_page_has(environment: pytest.MonkeyPatch) -> None:
    """app.js names the views that only the other page has, after a `typeof`."""
    (first,) = opened("/console").texts["script"]
    in_first = {path: script_text(f"console/{path.name}") in first for path in OURS}
    declared = re.compile(r"^(?:async )?(?:function|const|let) (\w+)", re.MULTILINE)
    others = {name for path in OURS if not in_first[path] for name in declared.findall(path.read_text())}
    assert "Rules" in others
    for path in OURS:
        code = COMMENTS.sub("", path.read_text())
        called = set(re.findall(r"(?<![\w.])(\w+)\(|<\$\{(\w+)\}|what: (\w+)", code))
        used = {name for names in called for name in names if name}
        assert not (in_first[path] and used & others), (path.name, used & others)


def test_no_name_is_declared_twice() -> None:
    """All scripts are in one function, where the second declaration would replace the first."""
    declared = re.compile(r"^(?:async )?(?:function|const|let) (\w+)", re.MULTILINE)
    shared = [FOLDER.parent / name for name in ("base.js", "forms.js", "provider-errors.js")]
    names = [name for path in [*shared, *OURS] for name in declared.findall(path.read_text())]
    assert [name for name in names if names.count(name) > 1] == []


def test_the_libraries_are_those_of_the_lock_file() -> None:
    """`make vendor-console` writes the digest of what it was made from into the first line."""
    folder = ROOT / "tools/console"
    sources = b"".join((folder / name).read_bytes() for name in ("package-lock.json", "vendor.mjs"))
    head, _, bundle = VENDOR.read_text().partition("\n")
    digests = re.findall(r"\b[0-9a-f]{64}\b", head)
    assert digests == [hashlib.sha256(sources).hexdigest(), hashlib.sha256(bundle.encode()).hexdigest()], (
        "make vendor-console"
    )


def test_every_request_is_to_an_endpoint_of_the_openapi_document() -> None:
    paths = json.loads((ROOT / "docs/openapi.json").read_text())["paths"]
    patterns = [
        (method.upper(), re.compile(re.sub(r"\{\w+\}", "[^/]+", path)))
        for path, methods in paths.items()
        for method in methods
    ]
    script = "".join(path.read_text() for path in OURS)
    asked = re.findall(r'(?:call|request)\("([A-Z]+)", [`"](/[^`"?]+)', script)
    asked += [("GET", path) for path in re.findall(r'(?:loadAll|useLoad)\([`"](/[^`"?]+)', script)]
    asked += [("POST", path) for path in re.findall(r'leaveFor\("(/[^"]+)', script)]
    assert len(asked) > 20
    for method, path in asked:
        named = re.sub(r"\$\{[^}]+\}", "x", path)
        assert any(verb == method and pattern.fullmatch(named) for verb, pattern in patterns), (method, path)


def test_the_product_name_is_escaped(environment: pytest.MonkeyPatch, option: SetOption) -> None:
    name = '"><script>alert(1)</script>{{script}}'
    option("product_name", name)
    page = opened("/console")
    assert len(page.all("script")) == 1
    (frame,) = (element for element in page.elements if element.id == "console")
    assert frame.attributes["data-product"] == name


def test_every_option_of_the_frame_is_read(page: Page) -> None:
    (frame,) = (element for element in page.elements if element.id == "console")
    script = "".join(path.read_text() for path in OURS)
    for attribute in frame.attributes:
        if attribute != "id":
            first, *rest = attribute.removeprefix("data-").split("-")
            assert f"own.{first}{''.join(map(str.title, rest))}" in script, attribute
