"""The users, accounts and sessions in the identity table (docs/data-model.md#identitytable-pk-sk).

The items of a user and their account never differ: one transaction writes them, on condition of the user's version.
Version 0.1.0 stored the hash in the user found by address. It is read from there, and the user's next change moves it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from hashlib import sha256

from larder import clock
from larder.accounts.models import (
    CREDENTIAL_PROVIDER,
    WARNED_BEFORE,
    Account,
    Credential,
    EmailTaken,
    ProviderAccount,
    ResetToken,
    Session,
    User,
)
from larder.addresses import canonical
from larder.clock import from_ms, to_epoch_seconds, to_ms
from larder.conditions import Condition, begins_with, equals, exists, missing
from larder.instance import Remembered
from larder.records import Form
from larder.sso.models import Domain
from larder.sso.repository import domain_key, parse_domain
from larder.tables import (
    IDENTITY,
    Found,
    Item,
    Read,
    Write,
    batch_get,
    commit,
    failed_writes,
)
from larder.teams.repository import provider_account_key

_USER = "user"
_ACCOUNT = f"account#{CREDENTIAL_PROVIDER}"
_PROVIDER_ACCOUNT = "account#"
_SUBJECT = "account"
_SESSION = "session#"
_ENDING_KEYS = "ending-keys"
_ENDING_ACCESS = "ending-access"

_USERS = Form(User, apart=("proven",))
_CREDENTIAL = Form(Credential)
_SESSIONS = Form(Session, apart=("user_id", "token_hash"))
_PROVIDER_ACCOUNTS = Form(ProviderAccount, apart=("user_id", "provider_id"))
_RESET_TOKENS = Form(ResetToken)

_holders: Remembered[str, str] = Remembered(1000)
"""User ids by token hash, of sessions that this instance has seen. They only select the items to read."""


def add(account: Account, *also: Write) -> bool:
    """Store a new user, and do other writes in the same transaction. False if the condition of one of these fails.

    Otherwise raises EmailTaken if another user has the address.
    """
    failed = failed_writes(*adding(account), *also)
    if failed and not any(write in failed for write in also):
        raise EmailTaken(account.user.email)
    return not failed


def adding(account: Account) -> list[Write]:
    """The writes that store a new user. They fail if another user has the address."""
    user = [IDENTITY.put(item, when=missing("pk")) for item in _user_items(account.user)]
    return [*user, *_put_credential(account), *_note_access(None, account.user)]


def was_empty() -> bool:
    """Whether there was no user when DynamoDB last counted."""
    return IDENTITY.was_empty()


def ending_setup() -> Write:
    """The write that ends the setup of the deployment. It fails if it has ended already."""
    return IDENTITY.put({"pk": "setup", "sk": "setup"}, when=missing("pk"))


def get(user_id: str) -> User | None:
    item = IDENTITY.get(user_id, _USER)
    return None if item is None else _user(item)


def get_many(user_ids: Sequence[str]) -> list[User]:
    """The users that exist, in no particular order."""
    return [_user(item) for item in IDENTITY.get_many([(user_id, _USER) for user_id in user_ids])]


def list_users() -> Iterator[User]:
    """Every user, in no particular order. Reads the whole table: for the operator, never on a request."""
    # Each user has two items. This selects one of them.
    by_id = equals(sk=_USER) & ~begins_with(pk="email#")
    yield from (_user(item) for item in IDENTITY.scan(by_id))


def linked_to(provider_id: str, user_ids: Sequence[str]) -> set[str]:
    """The ids of those users who have an account of the provider."""
    keys = [provider_account_key(user_id, provider_id) for user_id in user_ids]
    return {item["pk"] for item in IDENTITY.get_many(keys)}


def with_passwords(users: Sequence[User]) -> set[str]:
    """The ids of those users who have a password."""
    keys = [(_by_email(user.email), sk) for user in users for sk in (_USER, _ACCOUNT)]
    found = {(item["pk"], item["sk"]): item for item in IDENTITY.get_many(keys)}
    return {
        user.id
        for user in users
        if (item := found.get((_by_email(user.email), _USER)))
        and _account(item, found.get((_by_email(user.email), _ACCOUNT))).credential
    }


def sessions_of_provider(provider_id: str) -> Iterator[Session]:
    """Every session that was started with a provider. Reads the whole table: for the operator, never on a request."""
    yield from map(_session, IDENTITY.scan(begins_with(sk=_SESSION) & equals(provider=provider_id)))


def get_by_email(email: str) -> User | None:
    item = IDENTITY.get(_by_email(email), _USER)
    return None if item is None else _user(item)


def get_account(email: str) -> Account | None:
    return find_account(canonical(email))


def find_account(address: str) -> Account | None:
    """The account of a canonical address."""
    pk = f"email#{address}"
    user, credential = IDENTITY.get_together((pk, _USER), (pk, _ACCOUNT))
    return None if user is None else _account(user, credential)


def get_account_and_domain(email: str) -> tuple[Account | None, Domain | None]:
    """The account of an address, and the domain of it if a provider has that, as they are at one moment."""
    pk = _by_email(email)
    user, credential, domain = IDENTITY.get_together(
        (pk, _USER), (pk, _ACCOUNT), domain_key(canonical(email))
    )
    account = None if user is None else _account(user, credential)
    return account, None if domain is None else parse_domain(domain)


def change(
    old: Account,
    new: Account,
    *also: Write,
    spending: str | None = None,
    ending_keys_at: datetime | None = None,
) -> Account | None:
    """Replace `old` with `new`. Returns the stored account, or None if the user has changed since `old` was read.

    `spending` is the hash of a reset token. It is deleted in the same transaction; if it does not exist, nothing is
    changed. With `ending_keys_at`, it also stores a note that the keys created until then have to be deleted. `also`
    are other writes of the transaction. Raises EmailTaken.
    """
    stored, writes = replacing(old, new)
    writes += also
    if spending is not None:
        writes.append(IDENTITY.delete(f"reset#{spending}", "reset", when=exists("pk")))
    if ending_keys_at is not None:
        writes.append(ending_keys(new.user.id, ending_keys_at))
    return stored if commit(*writes) else None


def delete(account: Account, *also: Write, now: datetime) -> bool:
    """Delete the user, which ends their sessions. False if the user has changed since the account was read.

    `also` are other writes of the transaction.

    The caller adds the writes of `unlinking` for the user's accounts at providers.

    A `deleted` item stays until the user's other data is deleted: keys that the index did not show yet, and artifacts
    stored without a team.
    """
    user = account.user
    unchanged = _at_version(user)
    return commit(
        IDENTITY.delete(user.id, _USER, when=unchanged),
        IDENTITY.delete(_by_email(user.email), _USER, when=unchanged),
        IDENTITY.delete(_by_email(user.email), _ACCOUNT),
        IDENTITY.put({"pk": "deleted", "sk": user.id, "deleted_at": to_ms(now)}),
        *_note_access(user, None),
        *also,
    )


def deleted_users() -> Iterator[tuple[str, datetime]]:
    """Ids of deleted users that may have data left, and when they were deleted."""
    for item in IDENTITY.query(equals(pk="deleted")):
        yield item["sk"], from_ms(item["deleted_at"])


def delete_note(user_id: str) -> None:
    commit(IDENTITY.delete("deleted", user_id))


def ending_keys(user_id: str, until: datetime) -> Write:
    """The write that notes that the keys of the user that were created until then have to be deleted."""
    return IDENTITY.put({"pk": _ENDING_KEYS, "sk": user_id, "since": to_ms(until)})


def users_with_ending_keys() -> Iterator[tuple[str, datetime]]:
    """Ids of users whose reset has not deleted their keys yet, and the time of the reset."""
    for item in IDENTITY.query(equals(pk=_ENDING_KEYS)):
        yield item["sk"], from_ms(item["since"])


def delete_ending_keys_note(user_id: str) -> None:
    commit(IDENTITY.delete(_ENDING_KEYS, user_id))


def users_with_ending_access() -> Iterator[tuple[str, datetime, datetime | None]]:
    """Ids of users whose access ends or has ended, when it does, and when to warn them. None if they were warned."""
    for item in IDENTITY.query(equals(pk=_ENDING_ACCESS)):
        warn_at = None if "warned" in item else from_ms(item["warn_at"])
        yield item["sk"], from_ms(item["access_until"]), warn_at


def note_warning(user_id: str, ends_at: datetime) -> None:
    """Note that the user was warned of this end of the access. It does nothing if the end has moved."""
    same = equals(access_until=to_ms(ends_at))
    commit(IDENTITY.update(_ENDING_ACCESS, user_id, set={"warned": True}, when=same))


def delete_ending_access_note(user_id: str, ends_at: datetime) -> None:
    """The same for an end that has passed: there is nothing to warn of."""
    same = equals(access_until=to_ms(ends_at))
    commit(IDENTITY.delete(_ENDING_ACCESS, user_id, when=same))


def _note_access(old: User | None, new: User | None) -> list[Write]:
    """The write that notes when the access of a user ends, if that has changed. It forgets the warning."""
    before = None if old is None else old.access_until
    after = None if new is None else new.access_until
    if old is not None and after is None and before is not None:
        return [IDENTITY.delete(_ENDING_ACCESS, old.id)]
    if new is None or after is None or before == after:
        return []
    warn_at = after - min(WARNED_BEFORE, (after - clock.now()) / 4)
    item = {"access_until": to_ms(after), "warn_at": to_ms(warn_at)}
    return [IDENTITY.put({"pk": _ENDING_ACCESS, "sk": new.id, **item})]


def add_session(session: Session, *also: Write) -> bool:
    """Store a new session, and do other writes in the same transaction. False if the condition of one fails."""
    return commit(*starting(session), *also)


def starting(session: Session) -> list[Write]:
    """The writes that store a new session."""
    return [IDENTITY.put(item, when=missing("pk")) for item in _session_items(session)]


def find_session(token_hash: str) -> tuple[Session, User] | None:
    """The session of a token, and its user. The session can be expired or of an old generation."""
    user_id = holder_of(token_hash)
    if user_id is None:
        return None
    read = reading_session(user_id, token_hash)
    return read.parse(batch_get(read.keys))


def reading_session(user_id: str, token_hash: str) -> Read[tuple[Session, User] | None]:
    """The same, if the token is this user's."""

    def parse(found: Found) -> tuple[Session, User] | None:
        items = {item["sk"]: item for item in found[IDENTITY]}
        session, user = items.get(_SESSION + token_hash), items.get(_USER)
        if session is None or user is None:
            _holders.pop(token_hash, None)
            return None
        return _session(session), _user(user)

    return Read({IDENTITY: [(user_id, _SESSION + token_hash), (user_id, _USER)]}, parse)


def holder_of(token_hash: str) -> str | None:
    """The id of the user that the token's session belonged to. The session itself may have ended."""
    user_id = _holders.get(token_hash)
    if user_id is None:
        pointer = IDENTITY.get(_SESSION + token_hash, "session")
        if pointer is None:
            return None
        user_id = _holders[token_hash] = str(pointer["user_id"])
    return user_id


def get_session(user_id: str, token_hash: str) -> Session | None:
    item = IDENTITY.get(user_id, _SESSION + token_hash)
    return None if item is None else _session(item)


def list_sessions(user_id: str) -> list[Session]:
    """Every stored session of a user, newest first, including those that are no longer valid."""
    stored = IDENTITY.query(equals(pk=user_id) & begins_with(sk=_SESSION))
    sessions = [_session(item) for item in stored]
    return sorted(sessions, key=lambda session: session.created_at, reverse=True)


def extend_session(session: Session, *, ends_at: datetime) -> bool:
    """Store the new expiry. False if the session has ended or got another end in the meantime.

    `ends_at` is the end that was read.
    """
    record, holder = _session_items(session)
    same = equals(generation=session.generation, ends_at=to_ms(ends_at))
    return commit(IDENTITY.put(record, when=same), IDENTITY.put(holder, when=exists("pk")))


def shorten_sessions(user_id: str, until: datetime) -> None:
    """Let the sessions of a user end at that time, unless they end before it."""
    for session in list_sessions(user_id):
        if session.expires_at > until:
            record, _ = _session_items(replace(session, expires_at=until))
            commit(IDENTITY.put(record, when=equals(generation=session.generation)))


def delete_session(
    user_id: str, token_hash: str, noting: Callable[[str], Write] | None = None
) -> bool:
    """Delete a session of this user. False if the user does not have it.

    `noting` makes the audit entry by the id of the session. One transaction writes all, which DynamoDB recognizes if
    its reply gets lost and it is sent again.
    """
    found = IDENTITY.get(user_id, _SESSION + token_hash)
    if found is None:
        return False
    also = () if noting is None else (noting(found["id"]),)
    return commit(
        IDENTITY.delete(user_id, _SESSION + token_hash, when=exists("pk")),
        IDENTITY.delete(_SESSION + token_hash, "session"),
        *also,
    )


def revoke_other_sessions(account: Account, kept: Session | None, *also: Write) -> bool:
    """Raise the session generation of the user, and of the session to keep. False if either has changed since.

    `also` are other writes of the transaction.
    """
    generation = account.user.session_generation + 1
    user = replace(account.user, session_generation=generation)
    _, writes = replacing(account, replace(account, user=user))
    if kept is not None:
        item, _ = _session_items(replace(kept, generation=generation))
        unchanged = equals(generation=account.user.session_generation)
        writes.append(IDENTITY.put(item, when=unchanged))
    return commit(*writes, *also)


def find_subject(issuer: str, subject: str) -> tuple[str, str] | None:
    """The ids of the user and of the account that a person at a provider has. The user may be deleted."""
    item = IDENTITY.get(_subject_pk(issuer, subject), _SUBJECT)
    return None if item is None else (item["user_id"], item["id"])


def list_provider_accounts(user_id: str) -> list[ProviderAccount]:
    """The accounts of the user, or what is left of those of a deleted user, by provider."""
    found = IDENTITY.query(equals(pk=user_id) & begins_with(sk=_PROVIDER_ACCOUNT))
    return [_provider_account(item) for item in found]


def linking(
    account: ProviderAccount,
    *,
    of_deleted: str | None = None,
    instead: ProviderAccount | None = None,
) -> list[Write]:
    """The writes that store a new account. They fail if the person, or the user at the provider, has one already.

    `of_deleted` is the id of the deleted user that the person was linked to. `instead` is the account of the user that
    the new one replaces.
    """
    subject = {
        "pk": _subject_pk(account.issuer, account.subject),
        "sk": _SUBJECT,
        "user_id": account.user_id,
        "id": account.id,
    }
    free = missing("pk")
    unlinked = free if of_deleted is None else equals(user_id=of_deleted)
    writes = [IDENTITY.put(subject, when=unlinked)]
    item = _provider_account_item(account)
    if instead is None:
        return [*writes, IDENTITY.put(item, when=free)]
    unsubject, _ = unlinking(instead)
    same = equals(id=instead.id, version=instead.version)
    return [*writes, unsubject, IDENTITY.put(item, when=same)]


def using(account: ProviderAccount, *, now: datetime, address: str | None) -> Write:
    """The write that counts a sign-in with the account, for the transaction of the session.

    It fails if the account is gone. `address` is that of the account from now on.
    """
    return IDENTITY.update(
        *_link_key(account),
        set={"updated_at": to_ms(now), "address": address},
        add={"version": 1},
        when=equals(id=account.id),
    )


def unlinking(account: ProviderAccount) -> list[Write]:
    """The writes that delete an account. They fail if someone has signed in with it since it was read."""
    return [
        IDENTITY.delete(
            _subject_pk(account.issuer, account.subject), _SUBJECT, when=equals(id=account.id)
        ),
        IDENTITY.delete(
            *_link_key(account),
            when=equals(id=account.id, version=account.version),
        ),
    ]


def unlinking_all(user_id: str) -> list[Write]:
    """The writes that delete all accounts of the user at providers."""
    return [write for account in list_provider_accounts(user_id) for write in unlinking(account)]


def ending(session: Session) -> Write:
    """The write that ends a session. The item that leads to it has no effect without it."""
    return IDENTITY.delete(session.user_id, _SESSION + session.token_hash)


def commit_sign_in(*writes: Write) -> list[Write]:
    """Do all writes, or none. Returns those whose condition failed."""
    return failed_writes(*writes)


def delete_left_account(account: ProviderAccount) -> None:
    """Delete what is left of an account of a deleted user. The person may be linked to another user by now."""
    subject, item = unlinking(account)
    commit(subject)
    commit(item)


def replacing(old: Account, new: Account) -> tuple[Account, list[Write]]:
    """The account to store in place of `old`, and the writes. They fail if `old` has changed. Raises EmailTaken."""
    user = replace(new.user, version=old.user.version + 1)
    stored = replace(new, user=user)
    by_email, by_id = _user_items(user)
    unchanged = _at_version(old.user)
    writes = [IDENTITY.put(by_id, when=unchanged), *_put_credential(stored)]
    writes += _note_access(old.user, user)
    old_key = _by_email(old.user.email)
    stays = by_email["pk"] == old_key
    if old.credential is not None and not (stays and stored.credential is not None):
        writes.append(IDENTITY.delete(old_key, _ACCOUNT))
    if stays:
        writes.append(IDENTITY.put(by_email, when=unchanged))
    else:
        if IDENTITY.get(by_email["pk"], _USER) is not None:
            raise EmailTaken(user.email)
        writes.append(IDENTITY.put(by_email, when=missing("pk")))
        writes.append(IDENTITY.delete(old_key, _USER, when=unchanged))
    return stored, writes


def add_reset_token(token_hash: str, user: User, *, expires_at: datetime) -> None:
    item = {
        "pk": f"reset#{token_hash}",
        "sk": "reset",
        "user_id": user.id,
        "password_version": user.password_version,
        "address": canonical(user.email),
        "ends_at": to_ms(expires_at),
        "expires_at": to_epoch_seconds(expires_at),
    }
    commit(IDENTITY.put(item))


def find_reset_token(token_hash: str) -> ResetToken | None:
    """The reset token, even if it has expired."""
    item = IDENTITY.get(f"reset#{token_hash}", "reset")
    if item is None:
        return None
    return _RESET_TOKENS.record(item)


def _by_email(email: str) -> str:
    return f"email#{canonical(email)}"


def _user_items(user: User) -> tuple[Item, Item]:
    """The user's item by address, and the one by id."""
    record = {**_USERS.item(user), "proven": user.proven}
    by_email = {"pk": _by_email(user.email), "sk": _USER, **record}
    return by_email, {"pk": user.id, "sk": _USER, **record}


def _put_credential(account: Account) -> list[Write]:
    """The write that stores the credential, if there is one."""
    user, credential = account.user, account.credential
    if credential is None:
        return []
    item = {
        "pk": _by_email(user.email),
        "sk": _ACCOUNT,
        "provider_id": CREDENTIAL_PROVIDER,
        "user_id": user.id,
        "password_version": user.password_version,
        **_CREDENTIAL.item(credential),
    }
    return [IDENTITY.put(item)]


def _account(user_item: Item, credential_item: Item | None) -> Account:
    user = _user(user_item)
    if "password" in user_item:
        # Version 0.1.0 wrote this item. It does not know account items, so an existing one is older.
        return Account(user=user, credential=_CREDENTIAL.record(user_item))
    if credential_item is None or not _is_current(credential_item, user):
        return Account(user=user, credential=None)
    return Account(user=user, credential=_CREDENTIAL.record(credential_item))


def _is_current(credential_item: Item, user: User) -> bool:
    """False for an outdated account item. A deployment that went back to version 0.1.0 for a while leaves such items,
    for users who changed the address or the password or were deleted in that time.
    """
    return (credential_item["user_id"], credential_item["password_version"]) == (
        user.id,
        user.password_version,
    )


def _user(item: Item) -> User:
    # Version 0.1.0 did not store `proven`.
    return _USERS.record(item, proven=item.get("proven", False))


def _subject_pk(issuer: str, subject: str) -> str:
    # An issuer is a URL, which has no NUL.
    digest = sha256(issuer.encode() + b"\0" + subject.encode()).hexdigest()
    return f"sso-subject#{digest}"


def _link_key(account: ProviderAccount) -> tuple[str, str]:
    return provider_account_key(account.user_id, account.provider_id)


def _provider_account_item(account: ProviderAccount) -> Item:
    pk, sk = _link_key(account)
    return {"pk": pk, "sk": sk, **_PROVIDER_ACCOUNTS.item(account)}


def _provider_account(item: Item) -> ProviderAccount:
    provider_id = item["sk"].removeprefix(_PROVIDER_ACCOUNT)
    return _PROVIDER_ACCOUNTS.record(item, user_id=item["pk"], provider_id=provider_id)


def _session_items(session: Session) -> tuple[Item, Item]:
    """The session's item, and the item that leads from its token to the user."""
    expires_at = to_epoch_seconds(session.expires_at)
    record = {
        "pk": session.user_id,
        "sk": _SESSION + session.token_hash,
        "expires_at": expires_at,
        **_SESSIONS.item(session),
    }
    holder = {
        "pk": _SESSION + session.token_hash,
        "sk": "session",
        "user_id": session.user_id,
        "expires_at": expires_at,
    }
    return record, holder


def _session(item: Item) -> Session:
    return _SESSIONS.record(item, token_hash=item["sk"].removeprefix(_SESSION), user_id=item["pk"])


def _at_version(user: User) -> Condition:
    return equals(version=user.version)
