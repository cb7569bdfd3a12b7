"""The statements of the remote cache API."""

import re
from typing import Any

from tests.conformance.statement import Ask, Who, case

V8 = "/v8/artifacts"
HASH = f"{V8}/08e4547d5347b63f"
EVENT: dict[str, Any] = {
    "sessionId": "123e4567-e89b-42d3-a456-426614174000",
    "source": "REMOTE",
    "event": "HIT",
    "hash": "08e4547d5347b63f",
    "duration": 1234,
}


def ask(method: str, path: str, *, by: Who = "key", **more: Any) -> Ask:
    return Ask(by=by, method=method, path=path, **more)


def put(body: bytes = b"artifact", /, *, to: str = HASH, **headers: str) -> Ask:
    return ask("PUT", to, body=body, headers=_named(headers))


def _named(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


def events(*sent: Any, **headers: str) -> Ask:
    return ask("POST", f"{V8}/events", json=list(sent), headers=_named(headers))


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in EVENT.items() if key != name}


OTHER_KEY = ask(
    "POST",
    "/api/auth/api-key/create",
    by="user",
    json={"expiresIn": 86_400, "teamId": "{team_id}", "permissions": {"teams": ["read"]}},
)
BY_OTHER_KEY = {"authorization": "Bearer {0[key]}"}

DESCRIBES = "`x-artifact-client-ci` and"
"""The row about headers that only describe an artifact."""

TAG = "x-artifact-tag"

CACHE = (
    case("1.2-size", "Content-Length is required on upload", put(content_length=""), status=400),
    case("1.2-size-chunked", "also of a body in chunks", put(transfer_encoding="chunked"), status=400,
        row='"Content-Length (number'),
    case("1.2-duration", "the duration is a number of milliseconds", put(x_artifact_duration="1234"),
        ask("POST", V8, json={"hashes": ["08e4547d5347b63f"]}), status=200,
        json={"08e4547d5347b63f": {"size": 8, "taskDurationMs": 1234}}),
    case("1.2-duration-optional", "the duration is optional", put(), status=202),
    case("1.2-duration-invalid", "another duration is invalid", put(x_artifact_duration="soon"), status=400,
        row='`duration` is a "number (milliseconds)"'),
    case("1.2-tag", "a tag of base64 is returned on download", put(x_artifact_tag="c2lnbmVk"), ask("GET", HASH),
        status=200, headers={TAG: "c2lnbmVk"}),
    case("1.2-tag-head", "and with HEAD", put(x_artifact_tag="c2lnbmVk"), ask("HEAD", HASH), status=200,
        headers={TAG: "c2lnbmVk"}),
    case("1.2-tag-query", "and in a query", put(x_artifact_tag="c2lnbmVk"),
        ask("POST", V8, json={"hashes": ["08e4547d5347b63f"]}), status=200,
        json={"08e4547d5347b63f": {"size": 8, "taskDurationMs": int, "tag": "c2lnbmVk"}}),
    case("1.2-tag-600", "a tag has at most 600 characters", put(x_artifact_tag="A" * 600), status=202),
    case("1.2-tag-601", "a longer tag is invalid", put(x_artifact_tag="A" * 604), status=400),
    case("1.2-tag-base64", "a tag that is not base64 is invalid", put(x_artifact_tag="no base64!"), status=400,
        row='the tag is "base64"'),
    case("1.2-ci-50", "the name of the CI has at most 50 characters", put(x_artifact_client_ci="c" * 50), status=202),
    case("1.2-ci-51", "a longer name is invalid", put(x_artifact_client_ci="c" * 51), status=400, row=DESCRIBES),
    case("1.2-ci-text", "the name of the CI is a string", put(x_artifact_client_ci="bügel"), status=202),
    case("1.2-interactive-0", "interactive is 0", put(x_artifact_client_interactive="0"), status=202),
    case("1.2-interactive-1", "or 1", put(x_artifact_client_interactive="1"), status=202),
    case("1.2-interactive-2", "and nothing else", put(x_artifact_client_interactive="2"), status=400, row=DESCRIBES),
    case("1.2-event-duration-least", "a duration of an event is a number of milliseconds",
        events({**EVENT, "duration": -1}), status=400, row='`duration` is a "number"'),
    case("1.2-hash-text", "the hash is a string from the path", put(to=f"{V8}/a.b"), status=202, row='"`hash` (string'),
    case("1.2-event", "an event has these five fields", events(EVENT), status=200),
    case("1.2-event-recorded", "it is recorded", events(EVENT),
        ask("GET", "/v1/usage", by="user", query="slug={slug}"), status=200, json={"total": {"remoteHits": 1}}),
    case("1.2-events", "several events are sent together", events(EVENT, {**EVENT, "event": "MISS"}), status=200),
    case("1.2-event-duration", "the duration of an event is optional", events(without("duration")), status=200),
    *(
        case(f"1.2-event-{name}-required", f"`{name}` is required", events(without(name)), status=400)
        for name in ("sessionId", "source", "event", "hash")
    ),
    case("1.2-event-uuid", "the session is a UUID", events({**EVENT, "sessionId": "me"}), status=400),
    case("1.2-event-local", "the source is LOCAL or REMOTE", events({**EVENT, "source": "LOCAL"}), status=200),
    case("1.2-event-source", "and nothing else", events({**EVENT, "source": "DISK"}), status=400),
    case("1.2-event-kind", "the event is HIT or MISS", events({**EVENT, "event": "PUT"}), status=400),
    case("1.2-event-more", "no other properties are allowed", events({**EVENT, "cpu": 1}), status=400),
    case("1.2-event-hash", "every recorded event counts", events({**EVENT, "hash": "a.b"}),
        ask("GET", "/v1/usage", by="user", query="slug={slug}"), status=200, json={"total": {"remoteHits": 1}},
        row='"`hash`" is a string'),
    case("1.2-status", "the status is one of four words", ask("GET", f"{V8}/status"), status=200,
        json={"status": re.compile("^(disabled|enabled|over_limit|paused)$")}),
    case("1.2-query-null", "a value may be null", ask("POST", V8, json={"hashes": ["0000000000000000"]}), status=200,
        json={"0000000000000000": None}),
    case("1.2-query-duration", "the duration of an entry is required", put(),
        ask("POST", V8, json={"hashes": ["08e4547d5347b63f"]}), status=200,
        json={"08e4547d5347b63f": {"taskDurationMs": int}}),
    case("1.3-put", "a valid upload responds 202 with the URLs", put(), status=202, json={"urls": [str]}),
    case("1.3-get", "GET returns the body", put(), ask("GET", HASH), status=200, body=b"artifact"),
    case("1.3-head", "HEAD returns headers only", put(), ask("HEAD", HASH), status=200, body=b""),
    case("1.3-absent-get", "GET of an absent artifact responds 404", ask("GET", HASH), status=404),
    case("1.3-absent-head", "HEAD of an absent artifact responds 404", ask("HEAD", HASH), status=404),
    case("1.4-team-id", "teamId names the team", put(), ask("GET", HASH, query="teamId={team_id}"), status=200),
    case("1.4-slug", "slug names the team", put(), ask("GET", HASH, query="slug={slug}"), status=200),
    *(
        case(
            f"1.4-401-{method}{path[len(V8) :].replace('/', '-')}",
            "every endpoint requires a token",
            ask(method, path, by="nobody", json=sent),
            status=401,
        )
        for method, path, sent in (
            ("POST", f"{V8}/events", [EVENT]),
            ("GET", f"{V8}/status", None),
            ("PUT", HASH, None),
            ("GET", HASH, None),
            ("HEAD", HASH, None),
            ("POST", V8, {"hashes": []}),
        )
    ),
    case("1.4-events-ci", "events take the name of the CI",
        events(EVENT, x_artifact_client_ci="GITHUB_ACTIONS", x_artifact_client_interactive="0"), status=200),
    case("1.4-events-ci-51", "with its bound", events(EVENT, x_artifact_client_ci="c" * 51), status=400, row=DESCRIBES),
    case("1.4-events-interactive", "and interactive with its values",
        events(EVENT, x_artifact_client_interactive="yes"), status=400, row=DESCRIBES),
    case("1.4-events-array", "the body is an array", ask("POST", f"{V8}/events", json=EVENT), status=400),
    case("1.4-events-most", "an array of events has no greatest length", events(*[EVENT] * 501), status=200,
        row='"an array of cache usage events"'),
    case("1.4-put-get", "an upload can be downloaded by the same hash", put(b"bytes"), ask("GET", HASH), status=200,
        body=b"bytes"),
    case("1.4-put-again", "and again after another upload", put(b"first"), put(b"second"), ask("GET", HASH),
        status=200, body=b"second"),
    case("1.4-put-protected", "also in a team with pull requests",
        ask("PUT", "/v1/teams/{slug}/protection", by="user", json={"protected": True}), put(b"bytes"),
        ask("GET", HASH, by="user", query="slug={slug}"), status=200, row='the artifact "can afterwards'),
    case("1.4-put-query", "an invalid query value is 400", ask("PUT", HASH, body=b"x", query="teamId=a&teamId=%00"),
        status=400, row='"400: an invalid query value"'),
    case("1.4-put-empty", "an invalid file size is 400", put(b"", content_length="0"), status=400),
    case("1.4-put-mismatch", "as a length that is not that of the body", put(b"four", content_length="5"), status=400),
    case("1.4-get-ci", "GET takes the name of the CI", put(),
        ask("GET", HASH, headers={"x-artifact-client-ci": "c" * 51}), status=400, row=DESCRIBES),
    case("1.4-get-interactive", "and interactive", put(),
        ask("GET", HASH, headers={"x-artifact-client-interactive": "2"}), status=400, row=DESCRIBES),
    case("1.4-get-type", "GET is an octet stream", put(), ask("GET", HASH), status=200,
        headers={"content-type": "application/octet-stream"}),
    case("1.4-get-large", "GET responds 200 with the body", put(b"x" * 300_000), ask("GET", HASH), status=200,
        row='"200: binary stream body"'),
    case("1.4-query", "a query takes an array of hashes", put(),
        ask("POST", V8, json={"hashes": ["08e4547d5347b63f", "0" * 16]}), status=200,
        json={"08e4547d5347b63f": {"size": 8}, "0" * 16: None}),
    case("1.4-query-required", "`hashes` is required", ask("POST", V8, json={}), status=400),
    case("1.4-query-strings", "of strings", ask("POST", V8, json={"hashes": [1]}), status=400),
    case("1.4-query-most", "without a greatest number",
        ask("POST", V8, json={"hashes": [f"{n:016x}" for n in range(501)]}), status=200, row='"required `hashes`'),
    case("1.5-bearer", "the token is a bearer credential",
        ask("GET", f"{V8}/status", by="nobody", headers={"authorization": "Bearer {token}"}), status=200),
    case("1.5-basic", "and nothing else",
        ask("GET", f"{V8}/status", by="nobody", headers={"authorization": "Basic {token}"}), status=401),
    case("1.5-enough", "a bearer token is all that events need", OTHER_KEY,
        ask("POST", f"{V8}/events", by="nobody", json=[EVENT], headers=BY_OTHER_KEY), status=200,
        row="a bearer token is enough"),
    case("1.5-status", "and the status is that of the caller", OTHER_KEY,
        ask("GET", f"{V8}/status", by="nobody", headers=BY_OTHER_KEY), status=200, json={"status": "enabled"},
        row="the status of the caller"),
    case("1.7-403", "a caller without permission gets 403", put(), ask("GET", HASH, by="other", query="slug={slug}"),
        status=403),
    case("1.7-404", "404 is for GET and HEAD of an absent artifact", ask("GET", f"{V8}/absent"), status=404),
    case("1.9-path", "the version is in the path", ask("GET", "/v7/artifacts/status"), status=404),
)  # fmt: skip
