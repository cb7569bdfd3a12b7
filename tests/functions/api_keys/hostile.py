"""Hostile bodies for the endpoints that take properties of a key, and the reply that each must get."""

from typing import Any

from larder.api_keys.properties import MAX_METADATA_DEPTH, MAX_METADATA_LENGTH

NESTED: Any = "x"
for _ in range(MAX_METADATA_DEPTH + 1):
    NESTED = [NESTED]

INVALID = (400, "VALIDATION_ERROR")
METADATA = (400, "INVALID_METADATA_TYPE")
SERVER_ONLY = (400, "SERVER_ONLY_PROPERTY")
NOT_YOURS = (401, "UNAUTHORIZED_SESSION")
NOT_HELD = (403, "PERMISSION_NOT_HELD")

BODIES: dict[str, tuple[dict[str, Any], tuple[int, str]]] = {
    "another user's id": ({"userId": "A" * 32}, NOT_YOURS),
    "a malformed id": ({"userId": "email#ada@acme.example"}, NOT_YOURS),
    "an empty id": ({"userId": ""}, NOT_YOURS),
    "remaining": ({"remaining": 5}, SERVER_ONLY),
    "refillAmount": ({"refillAmount": 5}, SERVER_ONLY),
    "refillInterval": ({"refillInterval": 5}, SERVER_ONLY),
    "rateLimitEnabled": ({"rateLimitEnabled": False}, SERVER_ONLY),
    "rateLimitTimeWindow": ({"rateLimitTimeWindow": 5}, SERVER_ONLY),
    "rateLimitMax": ({"rateLimitMax": 5}, SERVER_ONLY),
    "a permission of another product": ({"permissions": {"billing": ["refund"]}}, NOT_HELD),
    "an unknown action": ({"permissions": {"artifacts": ["delete"]}}, NOT_HELD),
    "a prototype as a resource": ({"permissions": {"__proto__": ["read"]}}, INVALID),
    "a constructor as a resource": ({"permissions": {"constructor": []}}, INVALID),
    "a prototype as an action": ({"permissions": {"artifacts": ["prototype"]}}, INVALID),
    "a resource with a line break": ({"permissions": {"a\nb": ["read"]}}, INVALID),
    "an empty resource": ({"permissions": {"": ["read"]}}, INVALID),
    "many actions": ({"permissions": {"artifacts": ["read"] * 101}}, INVALID),
    "many resources": ({"permissions": {f"r{number}": [] for number in range(101)}}, INVALID),
    "a prototype in metadata": ({"metadata": {"__proto__": {"admin": True}}}, METADATA),
    "a prototype deep in metadata": ({"metadata": [{"a": {"constructor": {}}}]}, METADATA),
    "metadata of a megabyte": ({"metadata": "x" * 2**20}, METADATA),
    "metadata just too long": ({"metadata": "x" * (MAX_METADATA_LENGTH - 1)}, METADATA),
    "metadata that are deep": ({"metadata": NESTED}, METADATA),
    "a long name": ({"name": "n" * 33}, (400, "INVALID_NAME_LENGTH")),
    "a name of a megabyte": ({"name": "n" * 2**20}, (400, "INVALID_NAME_LENGTH")),
    "an empty name": ({"name": ""}, (400, "INVALID_NAME_LENGTH")),
    "a lone surrogate as a name": ({"name": "\ud800"}, INVALID),
    "a name with an escape": ({"name": "\x1b[2J"}, INVALID),
    "a lifetime of 0": ({"expiresIn": 0}, (400, "EXPIRES_IN_IS_TOO_SMALL")),
    "a negative lifetime": ({"expiresIn": -1}, (400, "EXPIRES_IN_IS_TOO_SMALL")),
    "a lifetime of more than a year": ({"expiresIn": 31_536_001}, (400, "EXPIRES_IN_IS_TOO_LARGE")),
    "a huge lifetime": ({"expiresIn": 10**30}, (400, "EXPIRES_IN_IS_TOO_LARGE")),
}

UNKNOWN_FIELDS: dict[str, Any] = {
    "id": "chosen",
    "key": "chosen" * 20,
    "key_hash": "chosen",
    "start": "chosen",
    "user_id": "chosen",
    "referenceId": "chosen",
    "createdAt": "2020-01-01T00:00:00.000Z",
    "lastRequest": "2020-01-01T00:00:00.000Z",
    "requestCount": -5,
    "configId": "default",
    "__proto__": {"isAdmin": "chosen"},
    "constructor": {"prototype": {"isAdmin": "chosen"}},
    "prototype": "chosen",
    "role": "chosen",
}
"""Unknown fields. Newer clients can send fields that Larder does not know, and Larder ignores them."""
