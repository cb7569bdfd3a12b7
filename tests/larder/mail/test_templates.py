"""The contents of mail, and that values in it are only text."""

import html
from html.parser import HTMLParser
from string import Formatter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from larder.mail import templates
from larder.mail.models import Message

URL = "https://cache.example.com/api/auth/verify-email?token=a.b.c&callbackURL=%2F"


def message(text: str, *, to: str = "ada@acme.example", product: str = "Larder", url: str = URL) -> Message:
    """The email, with a value that has the characters of HTML for each name."""
    names = {name for part in templates.TEXTS[text] for _, name, *_ in Formatter().parse(part) if name}
    values = {name: f"<{name}>" for name in names - {"to", "product"}}
    return templates.message(text, to=to, product=product, url=url, **values)


class Elements(HTMLParser):
    """The tags, link addresses and text of an HTML page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str | None] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name == "href"]

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("text", templates.TEXTS)
def test_text_and_html_have_the_same_content_and_link(text: str) -> None:
    sent = message(text)
    page = Elements(sent.html)
    assert sent.to == "ada@acme.example"
    assert sent.subject.startswith("Larder: ")
    assert set(page.links) == {URL}
    assert f"\n{URL}\n" in sent.text
    for paragraph in sent.text.split("\n\n"):
        assert paragraph.removeprefix("--\n").strip() in page.text


@pytest.mark.parametrize("text", templates.TEXTS)
@settings(max_examples=20)
@given(to=st.text().filter(str.isprintable), product=st.text(), url=st.text())
def test_no_value_adds_an_element_or_a_header(text: str, to: str, product: str, url: str) -> None:
    sent = message(text, to=to, product=product, url=url)
    assert Elements(sent.html).tags == Elements(message("sign_up_again").html).tags
    assert sent.subject.isprintable()
    assert html.escape(url) in sent.html


def test_a_value_is_not_read_as_a_template() -> None:
    sent = templates.message("verify_email", to="{url}@b.example", product="{to}", url="{title}")
    assert sent.subject == "{to}: Verify your address"
    assert "used the address {url}@b.example at {to}." in sent.text


def test_only_the_first_letter_and_domain_of_an_address_are_shown() -> None:
    assert templates.masked("{to}.call.0123@new.example") == "{***@new.example"


def test_a_value_has_no_line_break() -> None:
    sent = templates.message(
        "sign_in_with_provider", to="a@b.example", product="Larder", url=URL, provider="A\r\nBcc: e"
    )
    assert sent.subject == "Larder: Sign in with A Bcc: e"


@pytest.mark.parametrize("bad", ["a@b.example\r\nBcc: eve@evil.example", "a@b.example\n", "a\0@b"])
def test_an_address_with_control_characters_is_refused(bad: str) -> None:
    with pytest.raises(ValueError, match="control character"):
        message("verify_email", to=bad)
