"""Trusted origins, and redirects only to those."""

import json
import shutil
import subprocess
from collections.abc import Iterable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from larder.settings import SettingsError
from larder.web.origins import MAX_URL_LENGTH, is_trusted_origin, is_trusted_url, origin_of
from tests.conftest import SetOption
from tests.larder.web.endpoints import APP_ORIGIN, http_request

TRUSTED = "https://app.example.org, http://localhost:5173, https://*.preview.example.org"


@pytest.fixture(autouse=True)
def _trusted(option: SetOption) -> None:
    option("trusted_origins", TRUSTED)


def trusts(url: str) -> bool:
    return is_trusted_url(url, http_request())


@pytest.mark.parametrize(
    "url",
    [
        "/", "/dashboard", "/a/b.html?next=https://elsewhere.example/&x=//y#part", "/a?q=%2f%5c", "/%C3%A9",
        "/a#//elsewhere.example", "/~ada/(x)/it's;a=b,c:d@e!$&*+", f"{APP_ORIGIN}",
        f"{APP_ORIGIN}/welcome?x={{1|2}}", "HTTPS://Cache.EXAMPLE.com/", "https://cache.example.com:443/",
        "https://cache.example.com:0443", "https://app.example.org#x", "http://localhost:5173/done",
        "https://pr-7.preview.example.org/",
    ],
)  # fmt: skip
def test_a_path_and_a_url_of_a_trusted_origin_are_accepted(url: str) -> None:
    assert trusts(url)


BYPASSES = [
    # Another origin.
    "https://elsewhere.example/",
    "http://cache.example.com/",
    "https://cache.example.com:8443/",
    "https://cache.example.com.elsewhere.example/",
    "https://elsewhere.example/https://cache.example.com",
    "https://cache.example.comm",
    "https://xcache.example.com",
    "http://localhost:5174/",
    "http://localhost/",
    # `*` matches part of one label, with the same scheme and port.
    "https://preview.example.org/",
    "https://.preview.example.org/",
    "https://a.b.preview.example.org/",
    "http://a.preview.example.org/",
    "https://a.preview.example.org:8443/",
    "https://a.preview.example.org.elsewhere.example/",
    "https://elsewhere.example/.preview.example.org",
    "https://elsewhere.example#.preview.example.org",
    "https://elsewhere.example?.preview.example.org",
    "https://elsewhere.example\\.preview.example.org",
    "https://elsewhere.example%2f.preview.example.org",
    "https://elsewhere.example:80.preview.example.org",
    # A user name before the host.
    "https://cache.example.com@elsewhere.example/",
    "https://cache.example.com:443@elsewhere.example/",
    "https://elsewhere.example@cache.example.com/",
    "https://user:pass@cache.example.com/",
    "https://@cache.example.com/",
    # No host, or one slash too few or too many.
    "//elsewhere.example",
    "///elsewhere.example",
    "////elsewhere.example",
    "/\\elsewhere.example",
    "\\/elsewhere.example",
    "\\\\elsewhere.example",
    "https:elsewhere.example",
    "https:/elsewhere.example",
    "https:///elsewhere.example",
    "https:\\\\elsewhere.example",
    "https:cache.example.com",
    "https:/cache.example.com",
    "https:///cache.example.com",
    "https://",
    "https:///",
    "//cache.example.com/",
    # Characters that browsers strip: tabs, line feeds, leading and trailing spaces and controls.
    "/\t/elsewhere.example",
    "/\n/elsewhere.example",
    "/\r/elsewhere.example",
    "\t//elsewhere.example",
    " //elsewhere.example",
    "\x00//elsewhere.example",
    "\x1f/x",
    " /x",
    "/x ",
    "/x\n",
    "/x\r\nset-cookie: a=b",
    "https://cache.example.com/\n",
    "https://cache.example.com\t.elsewhere.example",
    "ht\ttps://elsewhere.example",
    "/x\x00",
    "/x\x7f",
    "/x\x85",
    # Encoded slashes, backslashes and controls in the path.
    "/%2felsewhere.example",
    "/%2Felsewhere.example",
    "/%5celsewhere.example",
    "/%5Celsewhere.example",
    "/a/%2f/b",
    "/a%5cb?x",
    "/%09/elsewhere.example",
    "/%0d%0aset-cookie:x",
    "/x%00",
    # An empty segment, which other software can read as the start of a host.
    "/.//elsewhere.example",
    "/..//elsewhere.example",
    "/a//elsewhere.example",
    # Other spellings of hosts.
    "https://cache.example.com./",
    "https://cache\u3002example\u3002com/",
    "https://cache\uff0eexample\uff0ecom/",
    "https://elsewhere\u3002example/",
    "https://\u24d2ache.example.com/",
    "https://cache.example.com\u2044elsewhere.example/",
    "https://c\u0430che.example.com/",
    "https://xn--che-5cd0a.example.com/",
    "https://%63ache.example.com/",
    "https://cache.example.com%00.elsewhere.example/",
    "https://cache.example.com%0a/",
    "https://\u212aache.example.com/",
    "http\u017f://cache.example.com/",
    "https://cache.example.com\u200b/",
    "https://ca\u00adche.example.com/",
    "https://[::1]/",
    "https://[cache.example.com]/",
    "http://0x7f.1/",
    "http://2130706433/",
    # Ports.
    "https://cache.example.com:/",
    "https://cache.example.com:65536/",
    "https://cache.example.com:99999/",
    "https://cache.example.com:-443/",
    "https://cache.example.com:4 43/",
    "https://cache.example.com:\u0664\u0664\u0663/",
    "https://cache.example.com:00000443/",
    # Other schemes, and text that is not a URL.
    "javascript:alert(1)",
    "JavaScript:alert(1)//https://cache.example.com",
    "java\nscript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "blob:https://cache.example.com/x",
    "file:///etc/passwd",
    "ftp://cache.example.com/",
    "ws://cache.example.com/",
    "view-source:https://cache.example.com",
    "about:blank",
    "x",
    "dashboard",
    "./x",
    "../x",
    "?x",
    "#x",
    "@elsewhere.example",
    ".elsewhere.example",
    # Characters that a page or a header would have to escape.
    '/"><script>',
    "/<x>",
    "/`",
    "/é",
    "/x\\y",
    "/x?y\\z",
    "/" + "x" * MAX_URL_LENGTH,
]  # fmt: skip


@pytest.mark.parametrize("url", BYPASSES)
def test_other_urls_are_refused(url: str) -> None:
    assert not trusts(url)


def test_a_url_can_have_the_maximum_length() -> None:
    assert trusts("/" + "x" * (MAX_URL_LENGTH - 1))


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://Example.ORG", "https://example.org"),
        ("https://example.org:443/x?y#z", "https://example.org"),
        ("http://example.org:080/", "http://example.org"),
        ("http://example.org:443", "http://example.org:443"),
        ("http://[::1]:3000/", "http://[::1]:3000"),
        ("null", None),
        ("", None),
        ("https://a.example, https://b.example", None),
        ("https://a.example,https://b.example", None),
    ],
)
def test_the_origin_of_a_url(url: str, origin: str | None) -> None:
    assert origin_of(url) == origin


class TestOptions:
    def test_a_base_url_replaces_the_url_of_the_api(self, option: SetOption) -> None:
        option("base_url", "https://builds.acme.example/")
        assert is_trusted_origin("https://builds.acme.example", http_request())
        assert not is_trusted_origin(APP_ORIGIN, http_request())

    def test_plain_http_is_trusted_if_the_gateway_uses_it(self) -> None:
        local = http_request(headers={"x-forwarded-proto": "http"}, domain="127.0.0.1:3000")
        assert is_trusted_origin("http://127.0.0.1:3000", local)
        assert not is_trusted_origin("https://127.0.0.1:3000", local)

    def test_the_host_header_has_no_effect(self) -> None:
        assert not is_trusted_origin("https://elsewhere.example", http_request(headers={"host": "elsewhere.example"}))

    @pytest.mark.parametrize(
        ("pattern", "matched", "not_matched"),
        [
            ("https://pr-*.example.org", "https://pr-12.example.org", "https://pr-.example.org"),
            ("https://*.*.example.org", "https://a.b.example.org", "https://a.example.org"),
            ("https://*.example.org:8443/", "https://a.example.org:8443", "https://a.example.org"),
            ("HTTPS://App.Example.Org:443", "https://app.example.org", "http://app.example.org"),
            ("http://a.example.org", "http://a.example.org", "http://aXexample.org"),
        ],
    )
    def test_a_wildcard_matches_part_of_one_label(
        self, pattern: str, matched: str, not_matched: str, option: SetOption
    ) -> None:
        option("trusted_origins", f" ,{pattern}, ")
        assert is_trusted_origin(matched, http_request())
        assert not is_trusted_origin(not_matched, http_request())

    @pytest.mark.parametrize(
        "entry", ["*", "*.example.org", "app.example.org", "https://a/b", "myapp://", "https://ü.example", "http*://a"]
    )  # fmt: skip
    def test_an_entry_that_is_not_an_origin_is_reported(self, entry: str, option: SetOption) -> None:
        option("trusted_origins", f"https://app.example.org,{entry}")
        with pytest.raises(SettingsError, match="LARDER_TRUSTED_ORIGINS must hold origins"):
            is_trusted_origin("https://elsewhere.example", http_request())

    def test_a_base_url_that_is_not_an_origin_is_reported(self, option: SetOption) -> None:
        option("base_url", "builds.acme.example")
        with pytest.raises(SettingsError, match="LARDER_BASE_URL must be an origin"):
            is_trusted_origin(APP_ORIGIN, http_request())


# Compared with a browser's parser -----------------------------------------------------------------

# Parts of URLs, and known ways to confuse URL parsers.
PIECES = [
    "https:", "http:", "HTTPS:", "javascript:", "data:", "/", "//", "\\", "/\\", "\\/", "@", ":", "?", "#", ".", "..",
    "cache.example.com", "CACHE.example.com", "app.example.org", "a.preview.example.org", ".preview.example.org",
    "elsewhere.example", "localhost:5173", ":443", ":80", ":8443", "\t", "\n", "\r", " ", "\x00", "\x1f", "\u3002",
    "\uff0e", "\uff0f", "\u2044", "\u00ad", "\u200b", "\u212a", "%2f", "%5c", "%2e", "%40", "%00", "%09", "%", "x",
    "user", "xn--", "[::1]", "[", "]", "0x7f.1", "1", "*", "é", ",", ";", "&", "=", "|", "{", "^", "<", '"', "`", "-",
]  # fmt: skip
hostile = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=12).map("".join),
    st.sampled_from(BYPASSES),
    st.text(max_size=40),
    st.text(max_size=12).map(lambda text: f"/{text}"),
    st.text(max_size=12).map(lambda text: f"{APP_ORIGIN}{text}"),
    st.text(max_size=12).map(lambda text: f"https://{text}.preview.example.org/"),
)
FEW = settings(max_examples=500)


@pytest.mark.slow
def test_a_trusted_url_leads_a_browser_to_a_trusted_origin() -> None:
    """Runs `new URL(url, page)` of a real JavaScript engine on every accepted URL of the corpus."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node")
    accepted: set[str] = set()

    @settings(FEW, max_examples=2000, database=None, derandomize=True)
    @given(hostile)
    def collect(url: str) -> None:
        if trusts(url):
            accepted.add(url)

    collect()
    assert len(accepted) > 50
    for url, origin in zip(sorted(accepted), browser_origins(node, sorted(accepted)), strict=True):
        # None: a browser does not navigate, such as for a host with invalid punycode.
        trusted = origin is None or is_trusted_origin(origin, http_request())
        assert trusted, f"{url!r} leads to {origin}"


def browser_origins(node: str, urls: list[str]) -> Iterable[str | None]:
    script = """
        const urls = JSON.parse(require('fs').readFileSync(0, 'utf8'));
        const origin = url => { try { return new URL(url, process.argv[1]).origin } catch { return null } };
        process.stdout.write(JSON.stringify(urls.map(origin)));
    """
    page = f"{APP_ORIGIN}/api/auth/sign-in/email"
    done = subprocess.run(
        [node, "-e", script, page], input=json.dumps(urls), capture_output=True, text=True, check=True
    )
    answers: list[str | None] = json.loads(done.stdout)
    return answers


@FEW
@given(hostile)
@example("/x")
def test_a_trusted_url_needs_no_escaping_in_headers_and_pages(url: str) -> None:
    if trusts(url):
        assert url.isascii()
        assert url.isprintable()
        assert not set(url) & set(' <>"\\`')


@FEW
@given(hostile)
def test_a_trusted_url_is_a_path_or_starts_with_a_trusted_origin(url: str) -> None:
    if not trusts(url):
        return
    if url.startswith("/"):
        assert not url.startswith(("//", "/\\"))
    else:
        assert is_trusted_origin(origin_of(url), http_request())
