"""Sessions and accounts on the wire, as the Better Auth client reads them (docs/clients/better-auth.md)."""

from collections.abc import Iterable
from typing import Any

from larder.accounts.models import CREDENTIAL_PROVIDER, Credential, Session
from larder.clock import to_iso
from larder.web.signed_in import Caller


def session_json(session: Session, token: str) -> dict[str, Any]:
    """`token` is the session's own only where its holder is told; elsewhere what `/revoke-session` knows it by."""
    return {
        "id": session.id,
        "token": token,
        "userId": session.user_id,
        "expiresAt": to_iso(session.expires_at),
        "createdAt": to_iso(session.created_at),
        "updatedAt": to_iso(session.updated_at),
        "ipAddress": session.ip_address,
        "userAgent": session.user_agent,
    }


def sessions_json(sessions: Iterable[Session], caller: Caller) -> list[dict[str, Any]]:
    """The caller's own session with its token, the others with its hash: who steals a session gets one, not all."""
    return [
        session_json(one, caller.token if one.id == caller.session.id else one.token_hash)
        for one in sessions
    ]


def accounts_json(user_id: str, credentials: Iterable[Credential]) -> list[dict[str, Any]]:
    return [account_json(user_id, one) for one in credentials]


def account_json(user_id: str, credential: Credential) -> dict[str, Any]:
    """Without the password's hash. A user has one account, so it needs no id of its own."""
    return {
        "id": user_id,
        "accountId": user_id,
        "providerId": CREDENTIAL_PROVIDER,
        "userId": user_id,
        "createdAt": to_iso(credential.created_at),
        "updatedAt": to_iso(credential.updated_at),
        "scopes": [],
    }
