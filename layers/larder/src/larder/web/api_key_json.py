"""API keys on the wire, as the Better Auth client reads them (docs/clients/better-auth.md)."""

from typing import Any

from larder.api_keys.models import ApiKey, Refusal, Verification
from larder.clock import to_iso

_MESSAGES = {
    Refusal.INVALID: "Invalid API key.",
    Refusal.DISABLED: "API key is disabled.",
    Refusal.EXPIRED: "API key has expired.",
    Refusal.LACKS_PERMISSION: "API key does not hold every required permission.",
    Refusal.USED_UP: "API key has no uses left.",
    Refusal.RATE_LIMITED: "Rate limit exceeded.",
}


def verification_json(verification: Verification) -> dict[str, Any]:
    """`{valid, error, key}`; a refused key is not shown."""
    if verification.refusal is None and verification.key is not None:
        return {"valid": True, "error": None, "key": api_key_json(verification.key)}
    refusal = verification.refusal or Refusal.INVALID
    error: dict[str, Any] = {"message": _MESSAGES[refusal], "code": refusal.value}
    if verification.try_again_in_ms is not None:
        error["details"] = {"tryAgainIn": verification.try_again_in_ms}
    return {"valid": False, "error": error, "key": None}


def api_key_json(key: ApiKey) -> dict[str, Any]:
    """The record without the key. `referenceId` is what newer clients call `userId`."""
    return {
        "id": key.id,
        "name": key.name,
        "start": key.start,
        "prefix": key.prefix,
        "userId": key.user_id,
        "referenceId": key.user_id,
        "teamId": key.team_id,
        "refillInterval": key.refill.interval_ms if key.refill else None,
        "refillAmount": key.refill.amount if key.refill else None,
        "lastRefillAt": to_iso(key.last_refill_at),
        "enabled": key.enabled,
        "rateLimitEnabled": key.rate_limit.enabled,
        "rateLimitTimeWindow": key.rate_limit.window_ms,
        "rateLimitMax": key.rate_limit.max_requests,
        "requestCount": key.request_count,
        "remaining": key.remaining,
        "lastRequest": to_iso(key.last_request),
        "expiresAt": to_iso(key.expires_at),
        "createdAt": to_iso(key.created_at),
        "updatedAt": to_iso(key.updated_at),
        "permissions": {resource: list(actions) for resource, actions in key.permissions.items()},
        "metadata": key.metadata,
    }
