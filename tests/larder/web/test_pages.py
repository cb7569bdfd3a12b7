"""Rules for every page: it loads nothing, runs only its own script, cannot be framed, and is accessible by keyboard and
screen reader.
"""

import gzip
import re

import pytest

from tests.conftest import SetOption
from tests.default_template import template
from tests.page import Page, opened, policy_hash
from tests.requests import Sender

PATHS = sorted(
    route.path
    for route in template().routes
    if route.function.handler.startswith("pages.show_")
    and not route.path.endswith(".json")
    # tests/larder/web/test_console.py, and tests/functions/pages/test_show_docs.py for pages without a script
    and not route.path.startswith(("/console", "/docs"))
)


UNKNOWN = "/nowhere"


@pytest.fixture(params=[*PATHS, UNKNOWN])
def page(request: pytest.FixtureRequest, environment: pytest.MonkeyPatch) -> Page:
    return opened(request.param, status=404 if request.param == UNKNOWN else 200)


def test_the_list_of_pages_is_not_empty() -> None:
    assert {"/", "/turborepo/token", "/turborepo/success", "/reset-password"} <= set(PATHS)


@pytest.mark.parametrize("path", ["/turborepo/token", "/openapi.json"])
@pytest.mark.parametrize("accepted", ["gzip", "br, GZIP;q=0.8", "gzip, deflate, br, zstd"])
def test_a_page_is_compressed_for_a_client_that_takes_gzip(
    environment: pytest.MonkeyPatch, path: str, accepted: str
) -> None:
    plain = Sender(None)("GET", path)
    packed = Sender(None)("GET", path, headers={"accept-encoding": accepted})
    assert packed.headers["content-encoding"] == "gzip"
    assert plain.headers["vary"] == packed.headers["vary"] == "Accept-Encoding"
    assert gzip.decompress(packed.body) == plain.body
    assert len(packed.body) < 0.45 * len(plain.body)


@pytest.mark.parametrize("refused", ["", "br", "gzip;q=0", "identity, gzip; q=0.0", "xgzipx"])
def test_a_page_is_not_compressed_for_other_clients(environment: pytest.MonkeyPatch, refused: str) -> None:
    reply = Sender(None)("GET", "/turborepo/token", headers={"accept-encoding": refused})
    assert "content-encoding" not in reply.headers
    assert reply.body.startswith(b"<!doctype html>")


# --------------------------------------------------------------------------------------- safety


def test_the_page_cannot_be_framed(page: Page) -> None:
    assert page.policy["frame-ancestors"] == ["'none'"]
    assert page.reply.headers["x-frame-options"] == "DENY"


def test_the_page_is_not_cached_and_sends_no_referrer(page: Page) -> None:
    headers = page.reply.headers
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert "camera=()" in headers["permissions-policy"]
    assert headers["content-type"] == "text/html; charset=utf-8"
    assert page.reply.cookies == ()


def test_only_its_own_style_and_script_run_by_their_hashes(page: Page) -> None:
    (style,), (script,) = page.texts["style"], page.texts["script"]
    policy = page.policy
    assert policy["default-src"] == ["'none'"]
    assert policy["script-src"] == [policy_hash(script)]
    assert policy["style-src"] == [policy_hash(style)]
    assert policy["connect-src"] == ["'self'"]
    # Without its script a form sends nothing, so that no password gets into a URL.
    assert policy["form-action"] == policy["base-uri"] == ["'none'"]
    assert policy["require-trusted-types-for"] == ["'script'"]


def test_the_page_loads_nothing(page: Page) -> None:
    for element in page.elements:
        for name, value in element.attributes.items():
            assert name not in ("style", "srcset", "action", "formaction"), element
            assert not name.startswith("on"), element
            if name in ("src", "href"):
                is_icon = element.attributes.get("rel") == "icon"
                assert str(value).startswith("data:" if is_icon else "/"), element
    assert {element.tag for element in page.elements}.isdisjoint(
        {"img", "iframe", "object", "embed", "base", "video", "audio", "template"}
    )
    assert re.findall(r"@import|url\(", page.texts["style"][0]) == []


def test_the_script_never_writes_markup(page: Page) -> None:
    script = page.texts["script"][0]
    for name in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("):
        assert name not in script


def test_the_product_name_is_escaped(environment: pytest.MonkeyPatch, option: SetOption) -> None:
    option("product_name", '<script>alert("1")</script> & {{script}}')
    page = opened("/turborepo/token")
    assert len(page.all("script")) == 1
    assert '<script>alert("1")' in page.texts["title"][0]


# ---------------------------------------------------------------------- keyboard and screen reader


def test_the_page_has_a_language_and_fits_a_phone(page: Page) -> None:
    (html,) = page.all("html")
    assert html.attributes["lang"] == "en"
    names = {meta.attributes.get("name"): meta.attributes.get("content") for meta in page.all("meta")}
    assert names["viewport"] == "width=device-width, initial-scale=1"
    assert names["color-scheme"] == "light dark"


def test_ids_are_unique_and_references_to_them_exist(page: Page) -> None:
    assert len(set(page.ids)) == len(page.ids)
    named = [
        str(element.attributes[name])
        for element in page.elements
        for name in ("for", "aria-describedby", "aria-labelledby")
        if name in element.attributes
    ]
    script = page.texts["script"][0]
    named += re.findall(r"(?:element|fill|show|onSubmit|onClick)\(\"([\w-]+)\"", script)
    assert set(named) <= set(page.ids)


def test_every_field_has_a_label_and_an_autocomplete_value(page: Page) -> None:
    labelled = {label.attributes["for"] for label in page.all("label")}
    for field in page.all("input", "select"):
        assert field.id in labelled, field
        if field.attributes.get("type") != "checkbox" and field.tag == "input":
            assert "autocomplete" in field.attributes, field


def test_every_form_has_a_button_and_an_announced_place_for_errors(page: Page) -> None:
    for element in page.elements:
        if element.tag == "button":
            assert element.attributes["type"] in ("button", "submit"), element
    alerts = [one for one in page.elements if one.attributes.get("role") == "alert"]
    # What a provider said is above its buttons, and these are no form.
    of_forms = [one for one in alerts if "data-provider-problem" not in one.attributes]
    assert all("form" in alert.inside for alert in of_forms)
    submits = [one for one in page.all("button") if one.attributes["type"] == "submit"]
    assert len(page.all("form")) == len(of_forms) == len(submits)
    assert {form.attributes["method"] for form in page.all("form")} <= {"post"}


def test_one_section_is_visible_and_each_starts_with_its_heading(page: Page) -> None:
    sections = page.all("section")
    assert len([section for section in sections if "hidden" not in section.attributes]) == 1
    assert len(page.all("h1")) == len(sections)
    assert all("section" in heading.inside for heading in page.all("h1"))


# -------------------------------------------------------------------------------------- colours

CARD, WELL = "card", "well"
READ = 4.5
"""The minimum contrast of text (WCAG 2.2, 1.4.3) and of fields and focus (1.4.11)."""
SEEN = 3.0


def schemes(page: Page) -> dict[str, dict[str, str]]:
    """The colours of the light and the dark scheme, by name."""
    light, dark = (
        dict(re.findall(r"--([\w-]+):(#[0-9a-f]{6});", block))
        for block in re.findall(r":root\{(.*?)\}", page.texts["style"][0], re.DOTALL)[:2]
    )
    return {"light": light, "dark": dark}


def luminance(colour: str) -> float:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    ("front", "behind", "least"),
    [
        ("text", "page", READ),
        ("text", CARD, READ),
        ("text", WELL, READ),
        ("soft", CARD, READ),
        ("soft", WELL, READ),
        ("accent-strong", CARD, READ),
        ("accent-strong", WELL, READ),
        ("on-accent", "accent", READ),
        ("on-accent", "accent-strong", READ),
        ("bad", "bad-well", READ),
        ("good", "good-well", READ),
        ("field", CARD, SEEN),
        ("focus", CARD, SEEN),
        ("focus", "page", SEEN),
    ],
)
def test_colours_have_the_minimum_contrast(
    environment: pytest.MonkeyPatch, scheme: str, front: str, behind: str, least: float
) -> None:
    colours = schemes(opened("/"))[scheme]
    darker, lighter = sorted(luminance(colours[name]) for name in (front, behind))
    assert (lighter + 0.05) / (darker + 0.05) >= least
