"""The contents of mail, and that values in it are only text."""

import html
from collections.abc import Callable
from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larder.mail import templates
from larder.mail.models import Message

URL = "https://cache.example.com/api/auth/verify-email?token=a.b.c&callbackURL=%2F"
MOMENT = datetime(2026, 11, 22, 0, 47, tzinfo=UTC)


def email_was_changed(*, to: str, product: str, url: str) -> Message:
    """A template with the parameters of the others."""
    return templates.email_was_changed(
        to=to, product=product, url=url, new_email=to, changed_at=MOMENT, by_operator=False
    )


def password_was_reset(*, to: str, product: str, url: str) -> Message:
    return templates.password_was_reset(
        to=to, product=product, url=url, sessions_ended=True, keys_deleted=True
    )


def confirm_email_change(*, to: str, product: str, url: str) -> Message:
    return templates.confirm_email_change(to=to, product=product, url=url, new_email=to)


def key_never_expires(*, to: str, product: str, url: str) -> Message:
    return templates.key_never_expires(
        to=to, product=product, url=url, key_id="k" * 32, key_start="abcdef"
    )


def rule_pinned(*, to: str, product: str, url: str) -> Message:
    return templates.rule_pinned(to=to, product=product, url=url, team="acme", rule_id="rule_a")


def team_protected(*, to: str, product: str, url: str) -> Message:
    return templates.team_protected(to=to, product=product, url=url, team="acme")


def team_unprotected(*, to: str, product: str, url: str) -> Message:
    return templates.team_unprotected(to=to, product=product, url=url, team="acme")


def access_ends(*, to: str, product: str, url: str) -> Message:
    return templates.access_ends(to=to, product=product, url=url, provider="Acme", ends_at=MOMENT)


def sign_in_with_provider(*, to: str, product: str, url: str) -> Message:
    return templates.sign_in_with_provider(to=to, product=product, url=url, provider="Acme")


TEMPLATES = [
    access_ends,
    sign_in_with_provider,
    key_never_expires,
    rule_pinned,
    team_protected,
    team_unprotected,
    confirm_email_change,
    templates.verify_email,
    templates.reset_password,
    templates.sign_up_again,
    password_was_reset,
    email_was_changed,
]
Template = Callable[..., Message]


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


@pytest.mark.parametrize("template", TEMPLATES)
def test_text_and_html_have_the_same_content_and_link(template: Template) -> None:
    message = template(to="ada@acme.example", product="Larder", url=URL)
    page = Elements(message.html)
    assert message.to == "ada@acme.example"
    assert message.subject.startswith("Larder: ")
    assert set(page.links) == {URL}
    assert f"\n{URL}\n" in message.text
    for paragraph in message.text.split("\n\n"):
        assert paragraph.removeprefix("--\n").strip() in page.text


@pytest.mark.parametrize("template", TEMPLATES)
@given(to=st.text().filter(str.isprintable), product=st.text(), url=st.text())
def test_no_value_adds_an_element_or_a_header(
    template: Template, to: str, product: str, url: str
) -> None:
    plain = template(to="a@b.example", product="Larder", url="https://c.example")
    message = template(to=to, product=product, url=url)
    assert Elements(message.html).tags == Elements(plain.html).tags
    assert message.subject.isprintable()
    assert html.escape(url) in message.html


def test_a_value_is_not_read_as_a_template() -> None:
    message = templates.verify_email(to="{url}@b.example", product="{to}", url="{title}")
    assert message.subject == "{to}: Verify your address"
    assert "used the address {url}@b.example at {to}." in message.text


def test_the_notice_shows_only_the_first_letter_and_domain_of_a_new_address() -> None:
    message = templates.email_was_changed(
        to="ada@acme.example",
        product="Larder",
        url=URL,
        new_email="{to}.call.0123@new.example",
        changed_at=MOMENT,
        by_operator=False,
    )
    assert "was changed to the address {***@new.example on 2026-11-22 00:47 UTC." in message.text
    assert "0123" not in message.text + message.html


@pytest.mark.parametrize(
    ("by_operator", "how"),
    [
        (False, "It was confirmed with a link that we sent to the new address."),
        (True, "The operator of Larder changed it."),
    ],
)
def test_the_notice_says_how_the_address_was_changed(by_operator: bool, how: str) -> None:
    message = templates.email_was_changed(
        to="ada@acme.example",
        product="Larder",
        url=URL,
        new_email="eve@new.example",
        changed_at=MOMENT,
        by_operator=by_operator,
    )
    assert f" UTC. {how}" in message.text


@pytest.mark.parametrize("bad", ["a@b.example\r\nBcc: eve@evil.example", "a@b.example\n", "a\0@b"])
def test_an_address_with_control_characters_is_refused(bad: str) -> None:
    with pytest.raises(ValueError, match="control character"):
        templates.verify_email(to=bad, product="Larder", url=URL)
