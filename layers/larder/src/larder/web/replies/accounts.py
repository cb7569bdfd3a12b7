"""Sessions and accounts in the format of the Better Auth client (docs/clients/better-auth.md)."""

from collections.abc import Iterable
from typing import TypedDict

from larder.accounts.models import CREDENTIAL_PROVIDER, Credential, ProviderAccount, Session
from larder.accounts.user_json import UserJson
from larder.clock import IsoTime
from larder.records import shaped
from larder.web.principals.session import UserPrincipal


class SessionJson(TypedDict):
    """`token` is the token itself only in the session that the caller presented. In others it is a hash, which
    `/revoke-session` takes in its place.
    """

    id: str
    token: str
    userId: str
    expiresAt: IsoTime
    createdAt: IsoTime
    updatedAt: IsoTime
    ipAddress: str | None
    userAgent: str | None


class NewSessionJson(TypedDict):
    """`token` is null if no session was started."""

    token: str | None
    user: UserJson


class CurrentSessionJson(TypedDict):
    session: SessionJson
    user: UserJson


class AccountJson(TypedDict):
    """A way to sign in: the password, with the provider `credential`, or an account at an identity provider.

    `accountId` is the person's id at the provider, and `issuer` the provider's.
    """

    id: str
    accountId: str
    providerId: str
    issuer: str
    userId: str
    createdAt: IsoTime
    updatedAt: IsoTime
    scopes: list[str]


def session_json(session: Session, token: str) -> SessionJson:
    return shaped(SessionJson, session, token=token)


def sessions_json(sessions: Iterable[Session], principal: UserPrincipal) -> list[SessionJson]:
    """The caller's session has its token, the others their hash: one stolen session does not reveal the others."""
    return [
        session_json(
            session, principal.token if session.id == principal.session.id else session.token_hash
        )
        for session in sessions
    ]


def accounts_json(
    user_id: str, credential: Credential | None, accounts: Iterable[ProviderAccount]
) -> list[AccountJson]:
    password = [] if credential is None else [_password_json(user_id, credential)]
    return [*password, *map(_account_json, accounts)]


def _password_json(user_id: str, credential: Credential) -> AccountJson:
    """Without the password's hash. A user has one password, so the user's id is also the account's."""
    return shaped(
        AccountJson,
        credential,
        id=user_id,
        accountId=user_id,
        providerId=CREDENTIAL_PROVIDER,
        issuer=f"local:{CREDENTIAL_PROVIDER}",
        userId=user_id,
        scopes=[],
    )


def _account_json(account: ProviderAccount) -> AccountJson:
    return shaped(AccountJson, account, scopes=[])
