"""Hostile requests never get a 5xx, another owner's data, or an object outside their own owner's prefix.

Two teams store artifacts with the same hashes. One attacks with its own keys. The content of the other has marks that
no reply may contain. The local cloud gets the requests over sockets, byte for byte. The handlers in this process get
more requests in the same time, through the template's routes. FUZZ_EXAMPLES is the number of requests to the local
cloud (150), and to the handlers for each kind of request. FUZZ_SEED selects others.
"""

import base64
import json
import os
import re
import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from larder import clock
from larder import settings as options
from larder.api_keys.keys import create_key
from larder.api_keys.properties import NewKey
from larder.artifacts.models import HASH_PATTERN, UPLOAD_ID_PATTERN
from larder.settings import s3_endpoint
from larder.teams.members import add_member
from larder.teams.models import Role
from local.gateway import limits
from local.gateway.routing import Routes
from local.template import load_template
from tests.direct_uploads import PREFLIGHT
from tests.e2e.cloud import LocalCloud
from tests.proofs.conftest import BeginRounds, make_team
from tests.proofs.hostile import ASPECTS, Headers, Names, one_line
from tests.proofs.raw_http import RawReply, RawRequest, exchange
from tests.proofs.stored import index_keys, object_keys
from tests.requests import Cloud, Reply, Sender, deliver

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES") or 20)
SEED = int(os.environ.get("FUZZ_SEED") or 0)

SHARED, PRIVATE = "deadbeefdeadbeef", "b0b0b0b0b0b0b0b0"
INDEX_KEY = re.compile(rf"{HASH_PATTERN}(#pending)?|#discarded#{UPLOAD_ID_PATTERN}|#totals")
OF_THE_GATEWAY = {
    400: "Bad Request",
    403: limits.FOREIGN_HOST.message,
    413: "Request Entity Too Large",
    431: "Request Header Fields Too Large",
}
OF_THE_SERVER = b"Invalid HTTP request received."
"""The replies of the HTTP server to requests that are not valid HTTP."""


@dataclass(frozen=True)
class Secret:
    """The other team's artifact, with a mark in every part."""

    mark: str = field(default_factory=lambda: "OF-ANOTHER-OWNER-" + secrets.token_hex(8))
    size_bytes: int = 104_729
    duration_ms: int = 8_765_432_109

    @property
    def tag(self) -> str:
        return base64.b64encode(self.mark.encode()).decode()

    @property
    def sha(self) -> str:
        return "5ec4e7" + self.mark[-16:]

    @property
    def body(self) -> bytes:
        return self.mark.encode().ljust(self.size_bytes, b".")

    @property
    def traces(self) -> list[bytes]:
        texts = [self.mark, self.tag, self.sha, str(self.size_bytes), str(self.duration_ms)]
        return [text.encode() for text in texts]


@dataclass(frozen=True)
class Scene:
    """The attacking team, the other team, and their data before the attack."""

    attacker: Cloud
    other: Cloud
    secret: Secret
    tokens: tuple[str, ...]
    objects: frozenset[str]
    items: frozenset[tuple[str, str]]

    @property
    def own(self) -> tuple[str, str]:
        """The owners that the attacker's keys act for: the team and the user."""
        return self.attacker.team.id, self.attacker.user.id

    @property
    def names(self) -> Names:
        return Names(
            tokens=self.tokens,
            own_ids=(self.attacker.team.id,),
            own_slugs=(self.attacker.team.slug,),
            others_ids=(self.other.team.id, self.other.user.id),
            others_slugs=(self.other.team.slug,),
            hashes=(SHARED, PRIVATE, "0123456789abcdef"),
        )


def arrange(attacker: Cloud, other: Cloud) -> Scene:
    secret, now = Secret(), clock.now()
    described = {
        "x-artifact-tag": secret.tag,
        "x-artifact-sha": secret.sha,
        "x-artifact-duration": str(secret.duration_ms),
    }
    for hash in (SHARED, PRIVATE):
        reply = other.send("PUT", f"/v8/artifacts/{hash}", body=secret.body, headers=described)
        assert reply.status == 202
    assert attacker.send("PUT", f"/v8/artifacts/{SHARED}", body=b"the attacker's own").status == 202
    unbound = create_key(NewKey(user_id=attacker.user.id), now=now)[1]
    reading = NewKey(user_id=attacker.user.id, permissions={"artifacts": ("read",)})
    managing = NewKey(user_id=attacker.user.id, permissions={"artifacts": ("read", "manage")})
    limited = (create_key(new, now=now)[1] for new in (reading, managing))
    tokens = (attacker.token, unbound, *limited)
    return Scene(attacker, other, secret, tokens, frozenset(object_keys()), frozenset(index_keys()))


def check_reply(scene: Scene, request: RawRequest, reply: RawReply, *, s3: str) -> None:
    assert reply.status < 500, reply
    for trace in scene.secret.traces:
        assert trace not in reply.everything, f"{trace!r} of another owner in {reply}"
    assert reply.header("x-injected") is None, reply
    if location := reply.header("location"):
        owners = "|".join(scene.own)
        place = re.escape(s3) + rf"artifacts/(?:{owners})/{HASH_PATTERN}/{UPLOAD_ID_PATTERN}\?X-Amz-\S+"
        assert re.fullmatch(place, location), location
    if reply.status >= 400 and request.method != b"HEAD":
        check_error_body(reply)


def check_error_body(reply: RawReply) -> None:
    """Errors have the documented shape, except those of the gateway and its HTTP server."""
    if reply.status == 400 and reply.body == OF_THE_SERVER:
        return
    body = json.loads(reply.body)
    if set(body) == {"message"}:
        assert OF_THE_GATEWAY.get(reply.status) == body["message"], reply
        return
    error = body["error"]
    assert set(error) == {"code", "message"}, reply
    assert all(isinstance(text, str) and text for text in error.values()), reply
    assert (body["code"], body["message"]) == (error["code"], error["message"]), reply


def check_stores(scene: Scene) -> None:
    """All writes belong to the attacker's own owners, and the other team's artifacts are unchanged."""
    own = "|".join(scene.own)
    for key in set(object_keys()) - scene.objects:
        assert re.fullmatch(rf"artifacts/({own})/{HASH_PATTERN}/{UPLOAD_ID_PATTERN}", key), key
    for owner, hash in set(index_keys()) - scene.items:
        assert owner in scene.own, (owner, hash)
        assert INDEX_KEY.fullmatch(hash), (owner, hash)
    others = f"artifacts/{scene.other.team.id}/"
    kept = {key for key in object_keys() if key.startswith(others)}
    assert kept == {key for key in scene.objects if key.startswith(others)}
    for hash in (SHARED, PRIVATE):
        reply = scene.other.send("GET", f"/v8/artifacts/{hash}")
        assert (reply.status, reply.body) == (200, scene.secret.body)
        assert reply.headers["x-artifact-tag"] == scene.secret.tag


def try_all(aspect: str, scene: Scene, examples: int, attempt: Callable[[RawRequest], None]) -> None:
    @seed(SEED)
    @settings(max_examples=examples, database=None, suppress_health_check=list(HealthCheck))
    @given(ASPECTS[aspect](scene.names))
    def attack(request: RawRequest) -> None:
        attempt(request)

    attack()
    check_stores(scene)


@pytest.fixture
def scene_on_local_cloud(new_team: Cloud) -> Scene:
    return arrange(new_team, make_team())


@pytest.mark.slow
@pytest.mark.parametrize("aspect", ASPECTS)
def test_hostile_requests_over_the_wire(
    aspect: str, scene_on_local_cloud: Scene, local_cloud: LocalCloud, report_lines: list[str]
) -> None:
    scene, statuses = scene_on_local_cloud, Counter[str]()

    def attempt(request: RawRequest) -> None:
        reply = exchange(local_cloud.url, request)
        statuses["hung up" if reply is None else str(reply.status)] += 1
        if reply is None:
            # Only a request that is shorter than announced gets no reply.
            assert request.is_cut_short, request
            return
        check_reply(scene, request, reply, s3=f"{s3_endpoint()}/{options.settings().artifacts_bucket}/")

    try_all(aspect, scene, max(1, EXAMPLES // len(ASPECTS)), attempt)
    report_lines.append(f"hostile {aspect}: {dict(sorted(statuses.items()))}")


@pytest.mark.parametrize("aspect", [aspect for aspect in ASPECTS if aspect != "framing"])
def test_hostile_requests_to_the_handlers(
    aspect: str, cloud: Cloud, begin_rounds: BeginRounds, report_lines: list[str]
) -> None:
    scene, routes = arrange(cloud, make_team()), Routes(load_template(environ={}).routes)
    rounds = begin_rounds(lambda: check_stores(scene))
    statuses = Counter[str]()

    def attempt(request: RawRequest) -> None:
        method, target = request.method.decode(), request.target.decode("latin-1")
        path, _, query = target.partition("?")
        sent = [(name.lower(), value.strip(b" \t")) for name, value in request.headers]
        if routes.find(method, path) is None or limits.header_bytes(sent) > limits.MAX_HEADER_BYTES:
            return
        text = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in sent]
        reply = deliver(method, path, query, text, request.body)
        statuses[str(reply.status)] += 1
        check_reply(scene, request, raw(reply), s3=bucket_url())
        rounds.count()

    try_all(aspect, scene, EXAMPLES, attempt)
    report_lines.append(f"hostile {aspect}, to the handlers: {dict(sorted(statuses.items()))}")


def raw(reply: Reply) -> RawReply:
    return RawReply(reply.status, tuple(reply.headers.items()), reply.body)


def bucket_url() -> str:
    return f"https://{options.settings().artifacts_bucket}.s3.eu-central-1.amazonaws.com/"


CHANGES: dict[str, Callable[[str, str, str], str]] = {
    "owner": lambda url, own, other: url.replace(own, other),
    "path up": lambda url, own, other: url.replace(f"{own}/", f"{own}/../{other}/"),
    "encoded path up": lambda url, own, other: url.replace(f"{own}/", f"{own}/%2e%2e/{other}/"),
    "bucket": lambda url, own, _: url.replace(f"/artifacts/{own}", f"-2/artifacts/{own}"),
    "upload id": lambda url, *_: re.sub(r"/[0-9a-f]{28}\.", "/" + "0" * 28 + ".", url),
    "writer": lambda url, *_: re.sub(r"(/[0-9a-f]{28})[^?]*", r"\1.someone.else", url),
    "no writer": lambda url, *_: re.sub(r"(/[0-9a-f]{28})[^?]*", r"\1", url),
    "no signature": lambda url, *_: url.partition("?")[0],
    "lifetime": lambda url, *_: url.replace("X-Amz-Expires=", "X-Amz-Expires=9"),
    "no number": lambda url, *_: url.replace("X-Amz-Expires=", "X-Amz-Expires=x"),
    "date": lambda url, *_: re.sub(r"X-Amz-Date=\d{4}", "X-Amz-Date=2001", url),
    "more": lambda url, _, other: f"{url}&teamId={other}&slug=x",
    "repeated": lambda url, *_: url + "&" + url.partition("?")[2],
    "multipart": lambda url, *_: url + "&uploads",
    "garbage": lambda url, *_: url + "%00%ff&%zz=\xe9",
}
REFUSED = frozenset(CHANGES) - {"repeated", "multipart"}
"""nanio, unlike S3, accepts the query parameters that these add. The object is still stored in the offered place."""

UPLOAD_HEADERS: st.SearchStrategy[Headers] = st.lists(
    st.tuples(
        st.sampled_from(
            [
                b"x-amz-meta-tag",
                b"x-amz-meta-writer",
                b"x-amz-meta-duration-ms",
                b"x-amz-copy-source",
                b"x-amz-acl",
                b"x-amz-content-sha256",
                b"content-md5",
                b"authorization",
                b"content-type",
                b"x-artifact-tag",
            ]
        ),
        st.one_of(st.binary(max_size=40), st.sampled_from([b"NaN", b"-1", b"/", b"private"])),
    ),
    max_size=3,
).map(tuple)


@pytest.mark.slow
def test_hostile_uploads_to_an_offered_place(
    scene_on_local_cloud: Scene, local_cloud: LocalCloud, report_lines: list[str]
) -> None:
    """If an attacker changes a presigned URL, S3 stores the object in the offered place or refuses it."""
    scene, statuses = scene_on_local_cloud, Counter[str]()
    s3 = s3_endpoint()
    assert s3 is not None
    team, other = scene.attacker.team.id, scene.other.team.id

    @seed(SEED)
    @settings(max_examples=max(10, EXAMPLES // 6), database=None, suppress_health_check=list(HealthCheck))
    @given(
        st.sampled_from(["PUT", "PUT", "PUT", "GET", "DELETE", "POST", "HEAD"]),
        st.sampled_from(["nothing", *CHANGES]),
        UPLOAD_HEADERS,
        st.binary(max_size=50),
    )
    def attack(method: str, change: str, more: Headers, body: bytes) -> None:
        offered = scene.attacker.send("OPTIONS", f"/v8/artifacts/{SHARED}", headers=PREFLIGHT)
        location = offered.headers["location"]
        if change != "nothing":
            location = CHANGES[change](location, team, other)
        target = location.removeprefix(s3)
        host = s3.removeprefix("http://").encode()
        sent = ((b"host", host), (b"content-length", str(len(body)).encode()))
        clean = tuple((name, one_line(value)) for name, value in more)
        request = RawRequest(method.encode(), target.encode("latin-1"), sent + clean, body)
        reply = exchange(s3, request)
        assert reply is not None, request
        statuses[f"{change}: {reply.status}"] += 1
        assert reply.status < 500, (request, reply)
        for trace in scene.secret.traces:
            assert trace not in reply.everything
        if change in REFUSED:
            assert reply.status >= 400, (request, reply)

    attack()
    check_stores(scene)
    report_lines.append(f"hostile uploads: {dict(sorted(statuses.items()))}")


def test_the_proof_notices_a_leak(cloud: Cloud) -> None:
    scene = arrange(cloud, make_team())
    add_member(scene.other.team.id, cloud.user.id, Role.MEMBER, now=clock.now())
    send = Sender(scene.tokens[1], slug=scene.other.team.slug)
    hashes = {"hashes": [SHARED]}
    for method, path, content in (
        ("GET", f"/v8/artifacts/{SHARED}", None),
        ("HEAD", f"/v8/artifacts/{SHARED}", None),
        ("POST", "/v8/artifacts", hashes),
    ):
        reply = raw(send(method, path, json_body=content))
        assert reply.status == 200
        with pytest.raises(AssertionError, match="of another owner"):
            check_reply(scene, RawRequest(method.encode(), b""), reply, s3=bucket_url())
    send("PUT", f"/v8/artifacts/{SHARED}", body=b"written by a stranger")
    with pytest.raises(AssertionError):
        check_stores(scene)
