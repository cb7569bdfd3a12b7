"""Hostile requests that hypothesis generates: valid ones with up to three mutations.

The first check refuses a request where everything is wrong. These pass it.
"""

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from urllib.parse import quote

from hypothesis import strategies as st

from tests.catalogue import Request, operations, valid
from tests.proofs.raw_http import RawRequest

Headers = tuple[tuple[bytes, bytes], ...]
Mutation = Callable[[RawRequest], RawRequest]


@dataclass(frozen=True)
class Names:
    """The values that an attacker knows: own tokens, and the ids, slugs and hashes of all users."""

    tokens: tuple[str, ...]
    own_ids: tuple[str, ...]
    own_slugs: tuple[str, ...]
    others_ids: tuple[str, ...]
    others_slugs: tuple[str, ...]
    hashes: tuple[str, ...]


EVENT = valid("POST /v8/artifacts/events").json[0]
TRICKS = [
    "..", "../", "..%2f", "%2e%2e%2f", "%2e%2e/", "%252e%252e%252f", "..%5c", "..%c0%af", "%c0%ae%c0%ae/", "....//",
    "/", "//", "%2f", "%252f", "\\", "%5c", ".", "%2e", "~", "%00", "%0d%0ax-injected:%201", "%0a", "%09", "%7f",
    "%20",
    "+", "%2b", "%", "%zz", "%u002e", "?", "%3f", "#", "%23", "%23pending", "#pending", "%23totals",
    "%23discarded%23",
    ";", "&", "=", "*", "$", "{}", "{hash}", "%7bhash%7d", "<hash>", "'", '"', "%22", "|", "^", "`", "%e2%80%ae",
    "%ef%bb%bf",
    "%f0%9f%92%a5", "%ff", "%ed%a0%80", "%c3%28", "events", "status", "null", "__proto__", "con", "artifacts/",
]  # fmt: skip
RAW_TRICKS = [b"\xff\xfe", b"\xc3\xa9", b"\xe2\x80\xae", b"\xf0\x9f\x92\xa5", b"\x7f", b"\x01", b"\t", b"\x80"]
NUMBERS = [
    "0", "1", "-1", "+1", "1.5", "1.", ".5", "1e3", "1e400", "NaN", "nan", "Infinity", "-Infinity", "0x10", "1_000",
    "00",
    "9" * 11, "9" * 400, "9" * 5000, "10000000000", "10000000001", "18446744073709551616", "\u0661\u0662",
    "\uff11", "1,1", "1;1",
    "1 1", "",
    "true", "null", "1\x00", "²",
]  # fmt: skip
DAYS = [
    "2026-11-21", "2026-11-01", "2024-02-29", "2026-02-29", "2026-13-01", "0000-00-00", "0001-01-01", "2000-01-01",
    "2099-12-31", "9999-12-31", "20261121", "2026-W47-6", "2026-11-21T00:00:00Z", "+2026-11-21", "-2026-11-21",
    "2026-11-1", " 2026-11-21", "\u0662\u0660\u0662\u0666-11-21", "today",
]  # fmt: skip
TAGS = [
    "",
    "=",
    "====",
    "a",
    "aa",
    "aaa",
    "aaaa",
    "aa==",
    "aaa=",
    "a===",
    "aa=a",
    "-_-_",
    "a a a",
    "YWJj\x00",
    *(base64.b64encode(b"t" * length).decode() for length in (447, 448, 449, 450, 451, 453, 7000)),
    "a" * 600,
    "a" * 601,
    "a" * 604,
]
TYPES = [
    "application/json", "application/json; charset=utf-16", "text/plain", "application/octet-stream", "", "a/b/c",
    "image/svg+xml",
    "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
    "application/json,application/octet-stream", "\xe9",
]  # fmt: skip
HOSTS = [
    "",
    "evil.example",
    "evil.example:80",
    "127.0.0.1@evil.example",
    "a b",
    "\xe9",
    "x" * 300,
    "[::1]",
    "evil.example/v8",
    "%00",
]
METHODS = [
    "GET", "HEAD", "PUT", "POST", "OPTIONS", "DELETE", "PATCH", "TRACE", "CONNECT", "PROPFIND", "get", "Put", "G",
    "X" * 40,
]  # fmt: skip
JSON_TEXTS = [
    "", " ", "null", "true", "0", '""', "[]", "{}", "[[]]", "[null]", "[{}]",
    '{"hashes":[]}', '{"hashes":null}', '{"hashes":{}}',
    '{"hashes":[null]}', '{"hashes":[1]}', '{"hashes":["a","a"]}', '{"hashes":["../x"]}', '{"hashes":["\\u0000"]}',
    '{"hashes":["\\ud800"]}', '{"hashes":["a"],"hashes":["b"]}', '{"hashes":["a"],"more":1}', '{"hashes":NaN}',
    '{"hashes":[Infinity]}', '{"hashes":["a"', '{"hashes":["a"]}}', '{"hashes":["a"],}', "{'hashes':['a']}",
    "[NaN]", "-Infinity",
    "1e400", "1" * 5000, '{"\\ud800":1}', "\ufeff[]", "[" * 100_000, "[" * 500 + "]" * 500, '{"a":' * 100_000,
    '{"hashes":' + "[" * 90_000 + "]" * 90_000 + "}", '{"hashes":[' + ",".join(['"a"'] * 100_000) + "]}",
    '{"hashes":["' + "a" * 1_000_000 + '"]}', '{"hashes":["events","status","#totals","a#pending"]}',
]  # fmt: skip
EVENT_VALUES: list[Any] = [
    None, True, 0, -1, 1.5, 10**10, 10**10 + 1, 10**30, 10**400, -0.0, 1e-320, "", "x", "\x00", "\ud800",
    "é" * 200, "a" * 100_000,
    [], {}, [[]], {"a": 1}, "NaN", "REMOTE ", "hit", "HIT", "LOCAL", "../..", "00000000-0000-4000-8000-00000000000",
    "{00000000-0000-4000-8000-000000000007}", "urn:uuid:00000000-0000-4000-8000-000000000007",
]  # fmt: skip
EVENT_LITERALS = ["NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1E+2", "1" * 400, "0.1e-400"]


def text_bytes(text: str) -> bytes:
    """Latin-1 if it can encode the text, otherwise UTF-8. Both occur on the wire."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def one_line(value: bytes) -> bytes:
    return value.translate(None, b"\r\n")


def in_target(value: bytes) -> bytes:
    """The bytes without those that would end the request line."""
    return value.translate(None, b"\r\n ")


STARTS_A_JOB = "DELETE /v1/artifacts"
"""Left out: its job would delete what the other requests name."""

OF_CACHE = [operation for operation in operations() if valid(operation).for_team and operation != STARTS_A_JOB]


def valid_requests(names: Names) -> st.SearchStrategy[RawRequest]:
    """Valid requests."""
    requests = [
        valid(one, hash=hash) for one in OF_CACHE for hash in (names.hashes if "{hash}" in one else names.hashes[:1])
    ]
    query = valid("POST /v8/artifacts")
    requests.append(replace(query, json={"hashes": list(names.hashes)}))
    teams = [None, *(f"teamId={id}" for id in names.own_ids), *(f"slug={s}" for s in names.own_slugs)]
    return st.builds(_request, st.sampled_from(requests), st.sampled_from(teams), st.sampled_from(names.tokens))


def _request(request: Request, team: str | None, token: str) -> RawRequest:
    body = request.body if request.json is None else json.dumps(request.json).encode()
    media_type = "application/octet-stream" if request.body else "application/json"
    sent = [
        ("host", "localhost"),
        ("authorization", f"Bearer {token}"),
        ("content-type", media_type),
        *request.headers.items(),
    ]
    if body:
        sent.append(("content-length", str(len(body))))
    query = "&".join(part for part in (team, request.query) if part)
    target = request.path + (f"?{query}" if query else "")
    return RawRequest(request.method.encode(), target.encode(), tuple((n.encode(), v.encode()) for n, v in sent), body)


def hashes(names: Names) -> st.SearchStrategy[Mutation]:
    """Another hash: tricks with paths, encodings, keys of the index, other owners' artifacts."""
    known = [*names.hashes, *names.others_ids, *(f"{id}/{h}" for id in names.others_ids for h in names.hashes)]
    piece = st.one_of(
        st.sampled_from(TRICKS).map(text_bytes),
        st.sampled_from(known).map(text_bytes),
        st.sampled_from(RAW_TRICKS),
        st.text(max_size=20).map(lambda text: quote(text, safe="").encode()),
        st.binary(max_size=8).map(lambda raw: quote(raw, safe="").encode()),
        st.binary(max_size=8),
        st.integers(1, 9_000).map(lambda length: b"a" * length),
    )
    segment = st.lists(piece, min_size=1, max_size=5).map(b"".join).map(in_target)
    return segment.map(lambda hash: partial(_with_hash, hash=hash))


def _with_hash(request: RawRequest, hash: bytes) -> RawRequest:
    _, mark, query = request.target.partition(b"?")
    return replace(request, target=b"/v8/artifacts/" + hash + mark + query)


def teams(names: Names) -> st.SearchStrategy[Mutation]:
    """Another query: repeated, encoded, joined and foreign team parameters."""
    ids, slugs = [*names.own_ids, *names.others_ids], [*names.own_slugs, *names.others_slugs]
    some = [*ids, *slugs]
    value = st.one_of(
        st.sampled_from(some),
        st.sampled_from(some).map(lambda text: quote(text.encode(), safe="").replace("-", "%2D")),
        st.sampled_from(some).map(lambda text: "".join(f"%{byte:02x}" for byte in text.encode())),
        st.sampled_from(some).map(lambda text: "".join(f"%25{byte:02x}" for byte in text.encode())),
        st.tuples(
            st.sampled_from(some),
            st.sampled_from([",", "%2c", "%00", "%0a", "%20", "+", "/", "%26slug="]),
            st.sampled_from(some),
        ).map("".join),
        st.sampled_from(
            ["", "team_", "team_%2e%2e", "team_" + "a" * 5_000, "TEAM_a", "%00", "%ff", "*", "slug%23", "personal"]
        ),
        st.sampled_from(TRICKS),
        st.text(max_size=20).map(lambda text: quote(text, safe="")),
    )
    name = st.sampled_from(
        [
            "teamId",
            "slug",
            "teamId",
            "slug",
            "teamid",
            "TEAMID",
            "teamId[]",
            "teamId[0]",
            "%74eamId",
            "slu%67",
            "slug%00",
            "",
            "x",
        ]
    )
    pair = st.tuples(name, st.sampled_from(["=", "=", "=", "", "=="]), value).map("".join)
    strange = st.tuples(
        st.lists(pair, min_size=1, max_size=5), st.sampled_from(["&", "&", "&", ";", "&&", "%26", "&amp;", "?"])
    ).map(lambda drawn: drawn[1].join(drawn[0]))
    # Valid parameters, but of another team, or of another team and the own one.
    plain = [f"teamId={id}" for id in ids] + [f"slug={slug}" for slug in slugs]
    foreign = st.lists(st.sampled_from(plain), min_size=1, max_size=3).map("&".join)
    return st.one_of(strange, foreign).map(lambda query: partial(_with_query, query=in_target(text_bytes(query))))


def _with_query(request: RawRequest, query: bytes) -> RawRequest:
    return replace(request, target=request.target.partition(b"?")[0] + b"?" + query)


def days() -> st.SearchStrategy[Mutation]:
    """The figures of days, of no days, and of too many."""
    day = st.one_of(st.sampled_from([*DAYS, *NUMBERS]), st.dates().map(str), st.text(max_size=12)).map(
        lambda text: quote(text.encode("utf-8", "surrogatepass"), safe="")
    )
    name = st.sampled_from(["from", "to", "from", "to", "From", "from[]", "%66rom"])
    query = st.lists(st.tuples(name, day).map("=".join), max_size=4).map("&".join)
    return query.map(lambda drawn: partial(_with_days, query=drawn.encode()))


def _with_days(request: RawRequest, query: bytes) -> RawRequest:
    return replace(request, method=b"GET", target=b"/v1/usage?" + query)


def headers(names: Names) -> st.SearchStrategy[Mutation]:
    """Additional headers, or other values for the valid ones."""
    token, foreign = names.tokens[0], names.others_ids[0]
    values: dict[str, list[str]] = {
        "x-artifact-duration": NUMBERS,
        "x-artifact-tag": TAGS,
        "x-artifact-sha": ["", "a" * 128, "a" * 129, "../..", "\xe9", "a b", "é漢"],
        "x-artifact-dirty-hash": ["", "a" * 128, "a" * 129, "\x00", "a,b"],
        "x-artifact-client-ci": ["", "c" * 50, "c" * 51, "\xe9", "漢字", "a\tb", " ", "a,b"],
        "x-artifact-client-interactive": ["0", "1", "2", "-0", "01", "", "true", "0,1", "\u0660"],
        "authorization": [
            "", "Bearer", "Bearer ", "Basic YTpi", f"bearer {token}", f"Bearer  {token}", f"Bearer {token} ",
            f"Bearer {token},",
            f"Bearer {token[:-1]}", f"Bearer {token}\x00",
            "Bearer " + "é" * 64, "Bearer " + "k" * 64, "Bearer " + "k" * 256,
            "Bearer " + "k" * 5_000, f"Token {token}", f"Bearer {token}, Bearer {'k' * 64}", f"Bearer {foreign}",
        ],
        "content-type": TYPES,
        "content-encoding": ["gzip", "deflate", "br", "identity", "aws-chunked", "x" * 100],
        "host": HOSTS,
        "x-forwarded-proto": ["http", "https", "javascript", "http,https", "\xe9", ""],
        "x-forwarded-for": ["127.0.0.1", "' OR 1=1", "\xe9" * 20],
        "x-forwarded-host": ["evil.example"],
        "access-control-request-method": ["PUT", "put", "GET", "DELETE", "", "PUT,GET", "\xe9", "ŒPUT"],
        "access-control-request-headers": ["*", "Authorization", "a" * 3_000, "\xe9"],
        "user-agent": ["", "turbo", "turbo 2.10.12", "turbo 2.10.13", "turbo 99999.1.1", "turbo 2.11.11\xe9",
        "x" * 3_000],
        "expect": ["100-continue", "200-ok"],
        "cookie": ["a=b; c=d", "=", ";" * 100, "\xe9=\xe9"],
        "upgrade": ["websocket", "h2c"],
        "range": ["bytes=0-0", "bytes=5-1"],
        "if-none-match": ["*"],
        "x-http-method-override": ["DELETE", "PUT"],
        "x-amz-security-token": ["x"],
        "x-amzn-trace-id": ["Root=1", "\xe9", "a" * 2_000],
        "accept-encoding": ["gzip", "*;q=0", "\xe9"],
        "teamid": list(names.others_ids),
    }  # fmt: skip
    named = st.sampled_from(sorted(values)).flatmap(
        lambda name: st.tuples(st.just(name.encode()), st.sampled_from(values[name]).map(text_bytes))
    )
    free = st.tuples(
        st.sampled_from(
            [name.encode() for name in sorted(values)] + [b"x-anything", b"X-Artifact-Tag", b"x-artifact-"]
        ),
        st.binary(max_size=60),
    )
    changed = st.tuples(st.lists(st.one_of(named, free), min_size=1, max_size=4), st.booleans())
    return changed.map(lambda drawn: partial(_with_headers, more=tuple(drawn[0]), in_place=drawn[1]))


def _with_headers(request: RawRequest, more: Headers, in_place: bool) -> RawRequest:
    clean = tuple((name, one_line(value)) for name, value in more)
    given = {name.lower() for name, _ in clean} if in_place else set()
    kept = tuple((name, value) for name, value in request.headers if name.lower() not in given)
    return replace(request, headers=kept + clean)


def many_headers() -> st.SearchStrategy[Mutation]:
    """More and larger headers than the gateway accepts."""
    drawn = st.tuples(st.sampled_from([10, 90, 300]), st.sampled_from([0, 10, 100, 9_000, 70_000]))
    return drawn.map(
        lambda sizes: partial(
            _with_headers,
            more=tuple((b"x-%d" % number, b"v" * (sizes[1] // sizes[0])) for number in range(sizes[0])),
            in_place=False,
        )
    )


def bodies() -> st.SearchStrategy[Mutation]:
    """Another body: invalid JSON, JSON that is too deep, too long or of other types, and any bytes."""
    names = sorted(EVENT)
    changed = st.tuples(st.sampled_from([*names, "more", "\ud800"]), st.sampled_from(EVENT_VALUES)).map(
        lambda pair: json.dumps([{**EVENT, pair[0]: pair[1]}]).encode()
    )
    literal = st.tuples(st.sampled_from(names), st.sampled_from(EVENT_LITERALS)).map(
        lambda pair: json.dumps([{**EVENT, pair[0]: "@"}]).replace('"@"', pair[1]).encode()
    )
    body = st.one_of(
        st.sampled_from(JSON_TEXTS).map(lambda text: text.encode("utf-8", "surrogatepass")),
        changed,
        literal,
        st.sampled_from([1, 499, 500, 501, 20_000]).map(lambda count: json.dumps([EVENT] * count).encode()),
        st.sampled_from([499, 500, 501]).map(
            lambda count: json.dumps({"hashes": [f"h{n}" for n in range(count)]}).encode()
        ),
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            max_leaves=10,
        ).map(lambda value: json.dumps(value).encode()),
        st.sampled_from(JSON_TEXTS).map(lambda text: text.encode("utf-16", "surrogatepass")),
        st.binary(max_size=200),
        st.sampled_from([0, 1, 6_291_000, 7_000_000, 10_000_001]).map(bytes),
    )
    return st.tuples(body, st.booleans()).map(lambda drawn: partial(_with_body, body=drawn[0], as_post=drawn[1]))


def _with_body(request: RawRequest, body: bytes, as_post: bool) -> RawRequest:
    kept = tuple(pair for pair in request.headers if pair[0] != b"content-length")
    length = (b"content-length", str(len(body)).encode())
    if as_post and request.method != b"POST":
        path = b"/v8/artifacts/events" if body.startswith(b"[") else b"/v8/artifacts"
        query = request.target.partition(b"?")
        json_type = (b"content-type", b"application/json")
        kept = (*(pair for pair in kept if pair[0] != b"content-type"), json_type)
        request = replace(request, method=b"POST", target=path + query[1] + query[2])
    return replace(request, headers=(*kept, length), body=body)


def framing() -> st.SearchStrategy[Mutation]:
    """A wrong, repeated or malformed content-length, or one together with chunks."""
    lengths = st.sampled_from([*NUMBERS, "3", "5", "13", "14", "4700000", "10000001", "99999999999999999999"])
    one = lengths.map(lambda length: ((b"content-length", one_line(text_bytes(length))),))
    two = st.tuples(lengths, lengths).map(
        lambda pair: tuple((b"content-length", one_line(text_bytes(length))) for length in pair)
    )
    chunks = st.sampled_from(
        ["chunked", "gzip, chunked", "chunked, chunked", "identity", "\x0bchunked", "xchunked"]
    ).map(lambda coding: ((b"transfer-encoding", text_bytes(coding)),))
    body = st.sampled_from(
        [None, b"5\r\nhello\r\n0\r\n\r\n", b"zz\r\n", b"0\r\n\r\nGET /v8/artifacts/status HTTP/1.1\r\n\r\n"]
    )
    length_of_chunks = st.tuples(chunks, one).map(lambda pair: pair[0] + pair[1])
    drawn = st.tuples(st.one_of(one, two, chunks, length_of_chunks), body)
    return drawn.map(lambda pair: partial(_with_framing, framing_headers=pair[0], body=pair[1]))


def _with_framing(request: RawRequest, framing_headers: Headers, body: bytes | None) -> RawRequest:
    kept = tuple(pair for pair in request.headers if pair[0] != b"content-length")
    return replace(request, headers=kept + framing_headers, body=request.body if body is None else body)


def methods() -> st.SearchStrategy[Mutation]:
    return st.sampled_from(METHODS).map(lambda method: partial(_with_method, method=method.encode()))


def _with_method(request: RawRequest, method: bytes) -> RawRequest:
    return replace(request, method=method)


def targets(names: Names) -> st.SearchStrategy[Mutation]:
    """A different path."""
    path = st.sampled_from([
        "*", "/", "//v8/artifacts/status", "/v8", "/v8/", "/V8/artifacts/status", "/v8/artifacts/",
        "/v8/artifacts/a/", "/v8/artifacts/a/b",
        "/v8//artifacts/a", "/./v8/artifacts/status", "/v8/../v8/artifacts/status", "/v8/artifacts/%73tatus",
        "/v8/artifacts/status/..",
        "/v8%2fartifacts%2fstatus", "http://evil.example/v8/artifacts/status", "evil.example:80",
        "/v8/artifacts/status#x", "/" + "a" * 9_000,
        "/$default/v8/artifacts/status", "/v8/artifacts/status;a=b", "/v8/artifacts/\\..\\..", "v8/artifacts/status",
    ])  # fmt: skip
    return path.map(lambda target: partial(_with_target, target=text_bytes(target)))


def _with_target(request: RawRequest, target: bytes) -> RawRequest:
    return replace(request, target=in_target(target))


def mutated(names: Names, *kinds: st.SearchStrategy[Mutation]) -> st.SearchStrategy[RawRequest]:
    """Valid requests with one to three mutations of these kinds."""
    return st.tuples(valid_requests(names), st.lists(st.one_of(*kinds), min_size=1, max_size=3)).map(_apply)


def _apply(drawn: tuple[RawRequest, list[Mutation]]) -> RawRequest:
    request, mutations = drawn
    for mutation in mutations:
        request = mutation(request)
    return request


ASPECTS: dict[str, Callable[[Names], st.SearchStrategy[RawRequest]]] = {
    "hashes": lambda names: mutated(names, hashes(names)),
    "teams": lambda names: mutated(names, teams(names)),
    "headers": lambda names: mutated(names, headers(names), many_headers()),
    "bodies": lambda names: mutated(names, bodies()),
    "days": lambda names: mutated(names, days()),
    "framing": lambda names: mutated(names, framing()),
    "methods and paths": lambda names: mutated(names, methods(), targets(names)),
    "everything": lambda names: mutated(names, hashes(names), teams(names), headers(names), bodies(), methods()),
}
