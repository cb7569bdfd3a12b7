"""A parsed page, as a browser gets it."""

import base64
import hashlib
from dataclasses import dataclass, field
from html.parser import HTMLParser

from tests.requests import Reply, Sender

_VOID = {"meta", "link", "input", "br", "path", "rect"}


@dataclass(frozen=True)
class Element:
    tag: str
    attributes: dict[str, str | None]
    inside: tuple[str, ...]
    """The tags around it, outermost first."""

    @property
    def id(self) -> str | None:
        return self.attributes.get("id")


@dataclass
class Page(HTMLParser):
    """The elements of a page in order, and the text of each style and script."""

    reply: Reply
    elements: list[Element] = field(default_factory=list)
    texts: dict[str, list[str]] = field(default_factory=dict)
    open_tags: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.feed(self.reply.body.decode())
        self.close()
        assert self.open_tags == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"<{tag}> has an attribute twice"
        self.elements.append(Element(tag, dict(attrs), tuple(self.open_tags)))
        if tag not in _VOID and not (self.get_starttag_text() or "").endswith("/>"):
            self.open_tags.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, dict(attrs), tuple(self.open_tags)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open_tags.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open_tags:
            self.texts.setdefault(self.open_tags[-1], []).append(data)

    def all(self, *tags: str) -> list[Element]:
        return [element for element in self.elements if element.tag in tags]

    @property
    def ids(self) -> list[str]:
        return [element.id for element in self.elements if element.id is not None]

    @property
    def body(self) -> dict[str, str | None]:
        (body,) = self.all("body")
        return body.attributes

    @property
    def policy(self) -> dict[str, list[str]]:
        directives = (one.split() for one in self.reply.headers["content-security-policy"].split(";"))
        return {name: values for name, *values in directives}


def opened(path: str, *, status: int = 200) -> Page:
    reply = Sender(None)("GET", path, headers={"accept": "text/html"})
    assert reply.status == status, reply.body
    return Page(reply)


def policy_hash(text: str) -> str:
    """The hash of an inline style or script, as a content security policy contains it."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
