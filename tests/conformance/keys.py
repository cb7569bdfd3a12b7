"""The statements of API key management."""

import re
from typing import Any

from tests.conformance.statement import Ask, Who, case

API = "/api/auth/api-key"
TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
NAMES = ("files:private", "repo/web", "*")


def ask(path: str, *, by: Who = "user", method: str = "POST", **more: Any) -> Ask:
    return Ask(by=by, method=method, path=path if path.startswith("/") else f"{API}/{path}", **more)


def create(by: Who = "user", **properties: Any) -> Ask:
    return ask("create", by=by, json=properties)


def limited(**properties: Any) -> Ask:
    """Creates a key with limits, which are for server-side calls."""
    return create("operator", **{"userId": "{user_id}", "expiresIn": 86_400, **properties})


def verify(key: str = "{0[key]}", **more: Any) -> Ask:
    return ask("verify", by="nobody", json={"key": key, **more})


def get(by: Who = "user", id: str = "{0[id]}") -> Ask:
    return ask(f"get?id={id}", by=by, method="GET")


def update(by: Who = "user", **changes: Any) -> Ask:
    return ask("update", by=by, json={"keyId": "{0[id]}", **changes})


VALID = {"valid": True, "error": None, "key": {"id": str}}


def refused(code: str) -> dict[str, Any]:
    return {"valid": False, "error": {"message": str, "code": code}, "key": None}


KEYS = (
    *(
        case(f"2.2-record-{name}", f"a record has `{name}`", create(name="ci"), get(), json={name: pattern})
        for name, pattern in {
            "id": str,
            "name": "ci",
            "start": str,
            "prefix": None,
            "userId": str,
            "refillInterval": None,
            "refillAmount": None,
            "lastRefillAt": None,
            "enabled": bool,
            "rateLimitEnabled": bool,
            "rateLimitTimeWindow": int,
            "rateLimitMax": int,
            "requestCount": int,
            "remaining": None,
            "lastRequest": ...,
            "createdAt": TIME,
            "updatedAt": TIME,
            "metadata": ...,
        }.items()
    ),
    case("2.2-permissions-field", "`permissions` is a string", create(), json={"permissions": str}, row="a string"),
    case("2.2-lastRequest-exact", "the time of the last request", create(), verify(), verify(), get(),
        json={"lastRequest": "{2[key][lastRequest]}"}, row='"time of last request'),
    case("2.2-requestCount-counts", "requests within the current window", create(), verify(), get(),
        json={"requestCount": 1}, row='"requests made within'),
    case("2.2-permissions", "permissions map a resource to actions", limited(permissions={"files": ["read"]}),
        json={"permissions": {"files": ["read"]}}),
    *(
        case(
            f"2.2-permissions-{n}",
            f"such as {name}",
            limited(permissions={name: [name]}),
            json={"permissions": {name: [name]}},
        )
        for n, name in enumerate(NAMES)
    ),
    case("2.2-permissions-any-text", "a resource is any string", limited(permissions={"r" * 129: ["read"]}),
        row='"resource type (string)"'),
    case("2.2-permissions-user", "a user can give any permission", create(permissions={"files": ["read"]}),
        row="any resource and any action"),
    *(
        case(
            f"2.2-metadata-{n}",
            "metadata is any value or null",
            create(metadata=value),
            get(),
            json={"metadata": value},
        )
        for n, value in enumerate(({"repo": "web"}, ["a"], "text", 1, True, None))
    ),
    case("2.2-metadata-large", "of any size", create(metadata="m" * 10_001), row='"Any value, or null"'),
    case("2.2-metadata-disabled", "unless the option is disabled", create(metadata={"a": 1}), status=400,
        options={"enable_key_metadata": "false"}),
    case("2.2-header", "the key is in x-api-key", create(),
        ask("/api/auth/get-session", by="nobody", method="GET", headers={"x-api-key": "{0[key]}"}),
        json={"user": {"id": "{user_id}"}}, options={"session_for_api_keys": "true"}),
    case("2.2-header-names", "or in another header", create(),
        ask("/api/auth/get-session", by="nobody", method="GET", headers={"x-key": "{0[key]}"}),
        json={"user": {"email": str}}, options={"session_for_api_keys": "true", "api_key_headers": "x-key"}),
    case("2.2-length", "a key has 64 characters by default", create(), json={"key": re.compile("^[^_]{64}$")}),
    case("2.2-length-any", "or any other number", create(), status=200, json={"key": re.compile("^.{32}$")},
        options={"default_key_length": "64"}, row="`defaultKeyLength`, any number"),
    case("2.2-prefix-default", "a default prefix", create(), json={"key": re.compile("^acme_"), "prefix": "acme_"},
        options={"default_key_prefix": "acme_"}),
    case("2.2-prefix-own", "or one of the request", create(prefix="ci_"), json={"key": re.compile("^ci_")}),
    case("2.2-prefix-bounds", "with bounds of its length", create(prefix="abc"), status=400,
        options={"maximum_key_prefix_length": "2"}),
    case("2.2-name-text", "a name is a string", create(name="a\tb"), row="the key's name"),
    case("2.2-prefix-text", "a prefix is a string", create(prefix="ü_"), row='"string"'),
    case("2.2-name-required", "a name can be required", create(), status=400, options={"require_key_name": "true"}),
    case("2.2-name-optional", "but is not by default", create(), json={"name": None}),
    case("2.2-name-bounds", "and has bounds", create(name="abc"), status=400, options={"maximum_key_name_length": "2"}),
    case("2.2-expiry-default", "keys can expire by default", create(), json={"expiresAt": TIME},
        options={"default_key_expires_in_seconds": "86400"}),
    case("2.2-expiry-fixed", "and users may not choose it", create(expiresIn=86_400), status=400,
        options={"disable_custom_key_expiry": "true"}),
    case("2.2-expiry-least", "with a least", create(expiresIn=60), status=400,
        options={"minimum_key_expires_in_seconds": "61"}),
    case("2.2-expiry-most", "and a greatest lifetime", create(expiresIn=86_401), status=400,
        options={"maximum_key_expires_in_seconds": "86400"}),
    case("2.2-rate-limit-default", "a rate limit of ten uses a day by default", create(),
        json={"rateLimitEnabled": True, "rateLimitTimeWindow": 86_400_000, "rateLimitMax": 10},
        row='rate limit "example'),
    case("2.2-rate-limit-option", "if the option is on", create(),
        json={"rateLimitEnabled": True, "rateLimitTimeWindow": 86_400_000, "rateLimitMax": 10},
        options={"key_rate_limit_enabled": "true"}),
    case("2.2-default-permissions", "new keys have the default permissions", create(),
        json={"permissions": {"reports": ["read"]}}, options={"default_key_permissions": '{"reports":["read"]}'}),
    case("2.2-start-off", "the start may not be stored", create(), json={"start": None},
        options={"store_key_start": "false"}),
    case("2.3-create", "a key without expiresIn never expires", create(), json={"key": str, "expiresAt": None}),
    case("2.3-create-expires", "with it, it expires", create(expiresIn=86_400), json={"expiresAt": TIME}),
    case("2.3-create-always", "valid input creates a key", create(), create(), status=200,
        options={"max_keys_per_user": "1"}, row="valid input creates a key"),
    case("2.3-use", "a use decreases remaining by 1", limited(remaining=5), verify(), get(), json={"remaining": 4}),
    case("2.3-use-unlimited", "or not, if it is null", create(), verify(), get(), json={"remaining": None}),
    case("2.3-use-last", "a key without uses left is removed", limited(remaining=1), verify(), verify(), get(),
        status=404),
    case("2.3-use-refused", "and not valid", limited(remaining=1), verify(), verify(),
        json={"valid": False, "error": {"message": str, "code": str}, "key": None}),
    case("2.3-use-refill", "also one with a refill", limited(remaining=1, refillAmount=1, refillInterval=86_400_000),
        verify(), verify(), get(), status=404, row='"remaining reaches 0: removed"'),
    case("2.3-limit", "a verification counts",
        limited(rateLimitEnabled=True, rateLimitMax=2, rateLimitTimeWindow=60_000), verify(), get(),
        json={"requestCount": 1}),
    case("2.3-limit-reached", "and is rejected at the limit",
        limited(rateLimitEnabled=True, rateLimitMax=1, rateLimitTimeWindow=60_000), verify(), verify(),
        json=refused("RATE_LIMITED")),
    case("2.3-limit-window", "until the window has passed",
        limited(rateLimitEnabled=True, rateLimitMax=1, rateLimitTimeWindow=1), verify(), verify(), verify(),
        json=VALID),
    case("2.3-delete", "the owner deletes a key", create(), ask("delete", json={"keyId": "{0[id]}"}),
        json={"success": True}),
    case("2.3-deleted", "which is gone then", create(), ask("delete", json={"keyId": "{0[id]}"}), verify(),
        json=refused("INVALID_API_KEY")),
    case("2.3-refill", "remaining is refilled", limited(remaining=1, refillAmount=3, refillInterval=1), verify(),
        verify(), json=VALID),
    case("2.4-create-all", "create takes five fields",
        create(name="ci", expiresIn=86_400, prefix="ci_", metadata={"a": 1}, permissions={"artifacts": ["read"]}),
        json={"name": "ci", "prefix": "ci_", "metadata": {"a": 1}, "permissions": {"artifacts": ["read"]}, "key": str}),
    case("2.4-create-fraction", "expiresIn is a number", create(expiresIn=86_400.5), row='`expiresIn`: "number"'),
    case("2.4-create-window", "rateLimitTimeWindow is a number of milliseconds",
        limited(rateLimitTimeWindow=0.5, rateLimitMax=1), row='"rateLimitTimeWindow'),
    case("2.4-create-server", "server-side calls also set limits", create(rateLimitEnabled=True),
        row='"Server-side calls additionally'),
    case("2.4-create-operator", "and the user",
        limited(rateLimitEnabled=True, rateLimitTimeWindow=1000, rateLimitMax=5),
        json={"rateLimitEnabled": True, "rateLimitTimeWindow": 1000, "rateLimitMax": 5}),
    case("2.4-verify", "verify returns valid, error and key", create(), verify(), json=VALID),
    case("2.4-verify-required", "`key` is required", ask("verify", by="nobody", json={}), status=400),
    case("2.4-verify-permissions", "with permissions that the key holds", create(permissions={"artifacts": ["read"]}),
        verify(permissions={"artifacts": ["read"]}), json=VALID),
    case("2.4-verify-lacking", "all of them", create(permissions={"artifacts": ["read"]}),
        verify(permissions={"artifacts": ["read", "write"]}), json={"valid": False, "key": None}),
    case("2.4-verify-many", "any number of them", create(), verify(permissions={"r": [str(n) for n in range(21)]}),
        status=200, row="any record of permissions"),
    case("2.4-create-belongs-to-a-user", "the key is assigned to the user",
        create(configId="team", organizationId="{slug}"), json={"userId": str},
        row='"The key is assigned to the user"'),
    case("2.4-get", "get returns the record", create(), get(), json={"id": str, "userId": str}),
    case("2.4-get-required", "`id` is required", ask("get", method="GET"), status=400),
    case("2.4-update-name", "update changes the name", create(name="a"), update(name="b"), json={"name": "b"}),
    case("2.4-update-permissions", "and the permissions", create(), update(permissions={"artifacts": ["read"]}),
        json={"permissions": {"artifacts": ["read"]}}),
    case("2.4-update-nothing", "`name` is optional", create(), update(), row='"`name` (string, optional)"'),
    case("2.4-update-required", "`keyId` is required", ask("update", json={"name": "b"}), status=400),
    case("2.4-delete-other", "only the owner deletes a key", create(),
        ask("delete", by="other", json={"keyId": "{0[id]}"}), status=404),
    case("2.4-delete-operator", "nobody else, too", create(), ask("delete", by="operator", json={"keyId": "{0[id]}"}),
        status=404, row='"only when the caller'),
    case("2.4-delete-required", "`keyId` is required to delete", ask("delete", json={}), status=400),
    case("2.4-list", "list has no parameters, and returns an array", create(), ask("list", method="GET"),
        json=[{"id": str}, {"id": str}]),
    case("2.4-list-own", "of the caller's records", create(), ask("list", by="other", method="GET"), json=[]),
    case("2.4-delete-expired", "delete-all-expired takes no body", ask("delete-all-expired-api-keys", by="operator"),
        json={"success": True}),
    case("2.4-session", "any endpoint gives a session for a key", create(),
        ask("/v2/user", by="nobody", method="GET", headers={"x-api-key": "{0[key]}"}),
        options={"session_for_api_keys": "true"}, row='"any other endpoint called with a valid key"'),
    case("2.4-session-all", "for whatever a user can do", create(),
        ask("/api/auth/list-sessions", by="nobody", method="GET", headers={"x-api-key": "{0[key]}"}),
        options={"session_for_api_keys": "true"}, row='"any other endpoint", for accounts'),
    case("2.4-session-off", "only if the option is on",
        ask("/api/auth/get-session", by="nobody", method="GET", headers={"x-api-key": "{token}"}), json=None),
    case("2.7-verify-invalid", "verify does not fail on an invalid key", verify("a" * 64),
        json=refused("INVALID_API_KEY")),
    case("2.8-remaining-0", "remaining of 0 disables the key", limited(), update("operator", remaining=0), get(),
        json={"enabled": False, "remaining": 0}),
    case("2.8-rate-limit-verify", "the rate limit is only for verification",
        limited(rateLimitEnabled=True, rateLimitMax=1, rateLimitTimeWindow=60_000), verify(), get(), json={"id": str}),
)  # fmt: skip
