"""Larder refuses a value of the described type only if the description has the bound, or a row of docs/conformance.md.

Each field gets extreme values. A bound that is added without a row fails, wherever the code has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest

from tests.conformance.statement import Ask
from tests.conformance.test_statements import Scene, rows, scene

__all__ = ["scene"]
VALUE = "VALUE"
"""Stands for the value in a path or a query."""
DESCRIBED = "the description has this bound"
REFUSALS = (400, 403, 413)
NOT_OF_THE_FIELD = {"not_a_team_member", "INVALID_TOKEN", "INVALID_PASSWORD"}

TEXTS = {
    "empty": "",
    "space": " ",
    "break": "a\nb",
    "letter": "é",
    "signs": "a/b;c",
    "33": "x" * 33,
    "101": "x" * 101,
    "700": "x" * 700,
    "12000": "x" * 12_000,
}
NUMBERS = {"negative": -1, "zero": 0, "fraction": 0.5, "large": 10**11, "largest": 10**13}
ALL = " ".join(TEXTS)
LISTS = {"none": [], "many": ["0a1b"] * 1001, "hash": ["a/b"], "long": ["x" * 401]}
RECORDS = {
    "none": {},
    "no action": {"a": []},
    "long": {"x" * 129: ["a"]},
    "action": {"a": ["x" * 129]},
    "many": {f"a{number}": ["b"] for number in range(101)},
    "foreign": {"a;b": ["é"]},
}
EMAILS = {
    "upper": "A.B+c@X.EXAMPLE",
    "unicode": "ü@münchen.example",
    "local": "a@localhost",
    "number": "a@b.123",
    "65": f"{'x' * 65}@x.example",
    "quoted": '"a b"@x.example',
    "255": f"a@{'x.' * 123}example",
}
IMAGES = {"http": "HTTP://x.example/é", "data": "data:image/png;base64,AA==", "ftp": "ftp://x.example/a"}
URLS = {"path": "/a?b=c#d", "same": "https://cache.example.com/a", "other": "https://other.example/", "app": "app://x"}
OTHER = {"other": 1}

EVENT = {"sessionId": "6f1f5b1e-7d0c-4c52-9c1e-0c9a1c2b3d4e", "source": "REMOTE", "event": "HIT", "hash": "0a1b"}


def post(path: str, by: Any = "nobody", **json: Any) -> Ask:
    return Ask(by=by, method="POST", path=path, json=json)


def auth(path: str, by: Any = "nobody", **json: Any) -> Ask:
    return post(f"/api/auth/{path}", by, **json)


TEAM, EMAIL = '"400: an invalid query value"', "the email is"
STATUS = Ask(by="key", method="GET", path="/v8/artifacts/status")
PUT = Ask(by="key", method="PUT", path="/v8/artifacts/0a1b", body=b"x")
EVENTS = Ask(by="key", method="POST", path="/v8/artifacts/events", json=[EVENT])
QUERY = post("/v8/artifacts", "key", hashes=[])
CREATE = auth("api-key/create", "user", name="ci")
LIMITED = auth("api-key/create", "operator", userId="{user_id}", name="ci")
VERIFY = auth("api-key/verify", key="a")
UPDATE = auth("api-key/update", "user", keyId="{key_id}", name="ci")
DELETE = auth("api-key/delete", "user")
SIGN_UP = auth("sign-up/email", name="Bob", email="bob@x.example", password="correct horse")
SIGN_IN = auth("sign-in/email", email="bob@x.example", password="correct horse")
VERIFICATION = auth("send-verification-email", email="bob@x.example")
RESET = auth("request-password-reset", email="bob@x.example")
NEW_PASSWORD = auth("reset-password", newPassword="another horse", token="unknown")
CHANGE = auth("change-password", "user", newPassword="another horse", currentPassword="wrong")


def bound(
    field: str, values: Mapping[str, Any], refused: Mapping[str, str], *asks: Ask
) -> list[tuple[Ask, str, Mapping[str, Any], dict[str, str]]]:
    """A field of one or more requests, and why some of its values are refused: their names, and the row."""
    reasons = {name: reason for names, reason in refused.items() for name in names.split()}
    return [(ask, field, values, reasons) for ask in asks]


AT_HASH = replace(PUT, method="GET", path=f"/v8/artifacts/{VALUE}")
AT_TEAM, AT_SLUG = replace(STATUS, query=f"teamId={VALUE}"), replace(STATUS, query=f"slug={VALUE}")
OUT_OF_RANGE, OF_CONTROL = "empty 33 101 700 12000", "space break letter signs"
PASSWORD, HELD = "empty space break letter signs 700 12000", '"Any value, or null"'
TAGS = {name: TEXTS[name] for name in ("space", "signs", "101", "700")}
EVENTS_OF = {"none": [], "many": [EVENT] * 1001}
BOUNDS = [
    *bound("hash", TEXTS, {"space break letter signs 700 12000": '"`hash`'}, AT_HASH),
    *bound("teamId", TEXTS, {"space break letter signs 33 101 700 12000": TEAM}, AT_TEAM),
    *bound("slug", TEXTS, {"break letter signs 101 700 12000": TEAM}, AT_SLUG),
    *bound("x-artifact-tag", TAGS, {"700": DESCRIBED}, PUT),
    *bound("hashes", LISTS, {"many long": '"required `hashes`'}, QUERY),
    *bound("", EVENTS_OF, {"many": '"an array of cache usage'}, EVENTS),
    *bound("hash", TEXTS, {}, EVENTS),
    *bound("duration", NUMBERS, {}, EVENTS),
    *bound("sessionId", TEXTS, {ALL: DESCRIBED}, EVENTS),
    *bound("source", TEXTS, {ALL: DESCRIBED}, EVENTS),
    *bound("event", TEXTS, {ALL: DESCRIBED}, EVENTS),
    *bound("other", OTHER, {"other": DESCRIBED}, EVENTS),
    *bound("other", OTHER, {}, QUERY, CREATE, UPDATE, VERIFY, SIGN_UP, SIGN_IN),
    *bound("name", TEXTS, {OUT_OF_RANGE: DESCRIBED, "break": "the key's name"}, CREATE, UPDATE),
    *bound("expiresIn", NUMBERS, {"negative zero large largest": DESCRIBED, "fraction": "`expiresIn`"}, CREATE),
    *bound("prefix", TEXTS, {OUT_OF_RANGE: DESCRIBED, OF_CONTROL: '"string"'}, CREATE),
    *bound("metadata", {**TEXTS, **NUMBERS, "proto": {"__proto__": 1}}, {"12000 proto": HELD}, CREATE),
    *bound("permissions", RECORDS, {"long action many": '"resource type', "foreign": "any resource"}, CREATE, UPDATE),
    *bound("permissions", RECORDS, {"long action many": "any record of permissions"}, VERIFY),
    *bound("rateLimitTimeWindow", NUMBERS, {"negative zero fraction largest": '"rateLimitTimeWindow'}, LIMITED),
    *bound("rateLimitMax", NUMBERS, {"negative zero fraction largest": '"rateLimitTimeWindow'}, LIMITED),
    *bound("key", TEXTS, {}, VERIFY),
    *bound("keyId", TEXTS, {}, UPDATE, DELETE),
    *bound("name", TEXTS, {"empty space break 101 700 12000": "the name is"}, SIGN_UP),
    *bound("image", IMAGES, {"ftp": "the image is"}, SIGN_UP),
    *bound("email", EMAILS, {"local number 65 quoted 255": EMAIL}, SIGN_UP, VERIFICATION, RESET),
    *bound("email", EMAILS, {"quoted 255": EMAIL}, SIGN_IN),
    *bound("callbackURL", URLS, {"other app": "`callbackURL` and"}, SIGN_UP, SIGN_IN, VERIFICATION),
    *bound("redirectTo", URLS, {"other app": "`callbackURL` and"}, RESET),
    *bound("password", TEXTS, {PASSWORD: DESCRIBED}, SIGN_UP),
    *bound("password", TEXTS, {"700 12000": DESCRIBED}, SIGN_IN),
    *bound("newPassword", TEXTS, {PASSWORD: DESCRIBED}, CHANGE, NEW_PASSWORD),
]  # fmt: skip


def sent(ask: Ask, field: str, value: Any) -> Ask:
    if field.startswith("x-"):
        return replace(ask, headers={field: value})
    if ask.method == "GET":
        text = quote(str(value), safe="")
        query = None if ask.query is None else ask.query.replace(VALUE, text)
        return replace(ask, path=ask.path.replace(VALUE, text), query=query)
    if isinstance(ask.json, list):
        return replace(ask, json=[{**EVENT, field: value}] if field else value)
    return replace(ask, json={**ask.json, field: value})


@pytest.mark.parametrize(("ask", "field", "values", "reasons"), BOUNDS, ids=lambda one: getattr(one, "path", None))
def test_a_refused_value_of_the_described_type_has_a_row(
    ask: Ask, field: str, values: Mapping[str, Any], reasons: dict[str, str], scene: Scene
) -> None:
    found = {
        name: reply
        for name, value in values.items()
        if (reply := scene.send(sent(ask, field, value), [])).status in REFUSALS
        and reply.json["code"] not in NOT_OF_THE_FIELD
    }
    assert found.keys() == reasons.keys(), found
    for reason in {*reasons.values()} - {DESCRIBED}:
        assert [cell for cell in rows() if cell.startswith(reason)], reason
