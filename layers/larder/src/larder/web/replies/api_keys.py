"""API keys in the format of the Better Auth client (docs/clients/better-auth.md)."""

import json
from typing import Any, Literal, NotRequired, TypedDict

from larder.api_keys.models import ApiKey, Refusal, Verification
from larder.clock import IsoTime
from larder.records import shaped

_MESSAGES = {
    Refusal.INVALID: "Invalid API key.",
    Refusal.DISABLED: "API key is disabled.",
    Refusal.EXPIRED: "API key has expired.",
    Refusal.LACKS_PERMISSION: "API key does not hold every required permission.",
    Refusal.USED_UP: "API key has no uses left.",
    Refusal.RATE_LIMITED: "Rate limit exceeded.",
}


_REPLY_BYTES = 5_500_000
"""Lambda's limit is 6 MB, with the headers."""


class ApiKeyJson(TypedDict):
    """An API key without its secret. `referenceId` is what newer clients call `userId`: the user or team that owns it.

    A team owns a key whose `configId` is `team`. It has no `userId`. `dailyRequests`, `dailyBytes` and `pausedOn`, a
    day of UTC, are those of a public read key.
    """

    id: str
    name: str | None
    start: str | None
    prefix: str | None
    userId: str | None
    configId: Literal["default", "team"]
    referenceId: str
    teamId: str | None
    refillInterval: int | None
    refillAmount: int | None
    lastRefillAt: IsoTime | None
    enabled: bool
    rateLimitEnabled: bool
    rateLimitTimeWindow: int
    rateLimitMax: int
    requestCount: int
    remaining: int | None
    lastRequest: IsoTime | None
    expiresAt: IsoTime | None
    createdAt: IsoTime
    updatedAt: IsoTime
    permissions: dict[str, list[str]]
    metadata: Any
    dailyRequests: int | None
    dailyBytes: int | None
    pausedOn: str | None


class CreatedApiKeyJson(ApiKeyJson):
    """The API key with its secret, `key`, which no other reply has."""

    key: str


class ProtectingApiKeyJson(CreatedApiKeyJson):
    """The first key that its team trusts, which has protected the team."""

    teamProtected: Literal[True]


class ValidKeyJson(TypedDict):
    """The key passed, and one use of it was counted."""

    valid: Literal[True]
    error: None
    key: ApiKeyJson


class RetryJson(TypedDict):
    tryAgainIn: int


class RefusalJson(TypedDict):
    """`details` comes with `RATE_LIMITED`: try again after `tryAgainIn` milliseconds."""

    message: str
    code: Refusal
    details: NotRequired[RetryJson]


class RefusedKeyJson(TypedDict):
    """The key did not pass. It is not shown."""

    valid: Literal[False]
    error: RefusalJson
    key: None


def that_fit(records: list[ApiKeyJson]) -> list[ApiKeyJson]:
    """The first records that fit into a reply of Lambda, in which the body is a JSON string."""
    left_bytes = _REPLY_BYTES
    for number, record in enumerate(records):
        left_bytes -= len(json.dumps(json.dumps(record)))
        if left_bytes < 0:
            return records[:number]
    return records


def verification_json(verification: Verification) -> ValidKeyJson | RefusedKeyJson:
    if verification.refusal is None and verification.key is not None:
        return {"valid": True, "error": None, "key": api_key_json(verification.key)}
    refusal = verification.refusal or Refusal.INVALID
    error: RefusalJson = {"message": _MESSAGES[refusal], "code": refusal}
    if verification.try_again_in_ms is not None:
        error["details"] = {"tryAgainIn": verification.try_again_in_ms}
    return {"valid": False, "error": error, "key": None}


def created_key_json(
    key: ApiKey, raw: str, *, protects_team: bool
) -> CreatedApiKeyJson | ProtectingApiKeyJson:
    if protects_team:
        return {**api_key_json(key), "key": raw, "teamProtected": True}
    return {**api_key_json(key), "key": raw}


def api_key_json(key: ApiKey) -> ApiKeyJson:
    return shaped(
        ApiKeyJson,
        key,
        userId=key.user_id if key.has_user else None,
        configId="team" if key.owned_by_team else "default",
        # The next use of a key without uses left deletes it.
        enabled=key.enabled and not key.is_used_up,
    )
