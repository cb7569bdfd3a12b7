"""HTML pages for browsers.

A page is the same for every user. It contains its style and script, and loads nothing else. Its script gets the data of
the user from the endpoints of `/api/auth`. The Content-Security-Policy allows style and script by their hashes, so that
injected code does not run, and forbids frames.

Users wait for a page, so this module does not import botocore, pydantic and the resolver. They take most of the cold
start of other endpoints.
"""

import base64
import hashlib
import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import Any

from larder.settings import settings
from larder.web.gateway import add_security_headers, refusal
from larder.web.log import log_of_request
from larder.web.powertools.context import LambdaContext

Reply = dict[str, Any]
Handler = Callable[[dict[str, Any], LambdaContext], Reply]

_FOLDER = Path(__file__).with_name("html")
_HEADERS = MappingProxyType(
    {
        "Content-Type": "text/html; charset=utf-8",
        # The URL can contain a token.
        "Referrer-Policy": "no-referrer",
        # For browsers without frame-ancestors.
        "X-Frame-Options": "DENY",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        # No page needs these, and a script that gets in must not have them.
        "Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
    }
)
_JSON_HEADERS = MappingProxyType(
    {
        "Content-Type": "application/json",
        "Cache-Control": "public, max-age=300",
    }
)
_POLICY = (
    "default-src 'none'; script-src '{script}'; style-src '{style}'; img-src data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
_PLACEHOLDER = re.compile(r"\{\{([a-z_-]+)\}\}")
COMMENTS = re.compile(r"^ *(?://.*|/\*\*(?:.|\n)*?\*/)\n", re.MULTILINE)
_INDENTATION = re.compile(r"^ +", re.MULTILINE)
# Not after `}` and not before `.`: attributes in markup can stand there.
_LINE_BREAKS = re.compile(r"(?<=[;{>,(\[])\n|\n(?=[})\]<])")
# Operators and braces that are in no text that a page shows, except for the `{{ }}` of GitHub.
_SPACES = re.compile(
    r" (?P<operator>=>|[=!]==|&&|\|\||\?\?|[<>]=|[=?:+*]) |(?<=[^{]\{) | (?=\}(?!\}))"
)
_QUOTES = re.compile(r'(?<=[a-z]=)"([\w-]+)"(?=[\s>])')
_STYLE_SPACES = re.compile(r"\s*([{};])\s*|([:,])\s+")
_CLOSING = re.compile(r"</[a-z0-9]+>")
_MADE_FROM = re.compile(r" `make vendor-console` made it from .*")
_LEAST_COMPRESSED = 1000
_GZIP_BITS = 31
_TAKES_GZIP = re.compile(r"\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Page:
    """The HTML of a page and its Content-Security-Policy."""

    html: str
    policy: str


def page(name: str, title: str, *, signs_in: bool = False) -> Page:
    """Build the page from `html/<name>.html` and, if it exists, `.js`. `signs_in` fills `{{sign-in}}`."""
    return _in_a_card(name, signs_in, tuple(common_values(title).items()))


def common_values(title: str) -> dict[str, str]:
    """What each page's frame shows, or passes to the script in `data-` attributes."""
    options = settings()
    return {
        "title": title,
        "product": options.product_name,
        "base_url": options.base_url,
        "signs_in": truth(options.enable_email_and_password),
        "mails_sign_up": truth(options.send_verification_on_sign_up),
        "signs_up": truth(options.enable_email_and_password and options.sign_up_policy != "closed"),
        "shortest_password": str(options.minimum_password_length),
        "longest_password": str(options.maximum_password_length),
    }


def truth(value: bool) -> str:
    """A boolean as scripts read it."""
    return str(value).lower()


def page_handler(show: Callable[[], Page]) -> Handler:
    """The function that Lambda calls for a page."""

    return logged_reply(lambda _event: page_reply(show()))


def page_reply(shown: Page, *, status: int = 200) -> Reply:
    headers = {**_HEADERS, "Content-Security-Policy": shown.policy}
    return {"statusCode": status, "headers": headers, "body": shown.html}


def json_handler(show: Callable[[], str]) -> Handler:
    """The function that Lambda calls for JSON that changes only with a deployment."""

    return logged_reply(
        lambda _event: {"statusCode": 200, "headers": dict(_JSON_HEADERS), "body": show()}
    )


def logged_reply(reply: Callable[[dict[str, Any]], Reply]) -> Handler:
    """The function that Lambda calls: returns the reply to an event and logs a line."""

    def handler(event: dict[str, Any], _context: LambdaContext) -> Reply:
        log = log_of_request(event)
        answer = _compressed(refusal(event) or reply(event), event)
        add_security_headers(answer, event)
        log.info("answered", extra={"status": answer["statusCode"]})
        return answer

    return handler


def _compressed(reply: Reply, event: dict[str, Any]) -> Reply:
    """The reply, with gzip if the client takes it. The HTTP API does not compress."""
    body, headers = reply.get("body", ""), reply.get("headers", {})
    if len(body) < _LEAST_COMPRESSED:
        return reply
    headers = {**headers, "Vary": "Accept-Encoding"}
    if not _TAKES_GZIP.search(event.get("headers", {}).get("accept-encoding", "")):
        return {**reply, "headers": headers}
    headers["Content-Encoding"] = "gzip"
    return {**reply, "headers": headers, "body": _gzip(body), "isBase64Encoded": True}


@cache
def _gzip(text: str) -> str:
    """The compressed text in base64. Only a deployment changes these texts, so an instance compresses each once."""
    # With memLevel 7, in place of 8, the console is 100 bytes smaller.
    packer = zlib.compressobj(9, wbits=_GZIP_BITS, memLevel=7)
    return base64.b64encode(packer.compress(text.encode()) + packer.flush()).decode()


@cache
def _in_a_card(name: str, signs_in: bool, values: tuple[tuple[str, str], ...]) -> Page:
    forms = {"sign-in": _file("sign-in-forms.html")} if signs_in else {}
    content = _filled(_file(f"{name}.html"), forms)
    forms_scripts = ["provider-errors.js", "sign-in-forms.js"] if signs_in else []
    scripts = ["base.js", "forms.js", "kit.js", *forms_scripts]
    if (_FOLDER / f"{name}.js").exists():
        scripts.append(f"{name}.js")
    return assembled(
        "card.html", {"content": content}, ["kit.css", "card.css"], scripts, dict(values)
    )


def assembled(
    body: str,
    parts: Mapping[str, str],
    styles: Iterable[str],
    scripts: Sequence[str],
    values: Mapping[str, str],
) -> Page:
    """The page from files of `html/`: the frame `page.html` around `body`.

    `parts` are markup for placeholders of the body. `values` are text for those of the body and the frame. Without
    `scripts`, the page allows none.
    """
    # A function scope, so that names do not clash with the browser's global variables.
    script = f"(() => {{\n{''.join(map(script_text, scripts))}}})();\n" if scripts else ""
    style = "".join(map(style_text, styles))
    texts = {name: escape(value) for name, value in values.items()}
    filled = _filled(_file(body), {**texts, **parts})
    tag = f"<script>{script}</script>" if script else ""
    html = _filled(_file("page.html"), {**texts, "body": filled, "style": style, "script": tag})
    return Page(
        html, _POLICY.format(script=_hash(script) if script else "none", style=_hash(style))
    )


def script_text(name: str) -> str:
    """A script without its lines of comments, its indentation, and spaces and line breaks that it does not need.

    They are an eighth of the compressed console. A line of a text that begins with `//` or spaces would lose these,
    and one that ends with a comma its break, too. Bundled libraries keep their licences,
    without the hashes of what they were made from.
    """
    text = _file(name)
    if name.endswith("vendor.js"):
        return _MADE_FROM.sub("", text)
    # Markup in a script is of htm, which closes any element with `<//>`, and needs no quotes around one word.
    short = _CLOSING.sub("<//>", _INDENTATION.sub("", COMMENTS.sub("", text)))
    short = _QUOTES.sub(r"\1", short)
    return _SPACES.sub(lambda found: found["operator"] or "", _LINE_BREAKS.sub("", short))


def style_text(name: str) -> str:
    """A style without line breaks, and without spaces where they mean nothing. Before a colon, they do."""
    return _STYLE_SPACES.sub(lambda found: found[1] or found[2], _file(name))


def _filled(template: str, values: Mapping[str, str]) -> str:
    """The template with its placeholders filled in one pass, so that a value that looks like one stays text."""
    return _PLACEHOLDER.sub(lambda found: values[found[1]], template)


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _file(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")
