"""The identity table.

| pk | sk | holds |
|---|---|---|
| `email#<canonical address>` | `user` | the user, found by address |
| `email#<canonical address>` | `account#credential` | the account of a user who has a password: its hash |
| user id | `user` | the same user, found by id: all that a session's look-up reads besides the session |
| user id | `session#<token hash>` | a session |
| `session#<token hash>` | `session` | whose session it is; means nothing once the session itself is gone |
| `reset#<token hash>` | `reset` | whose password a reset link may change |

The items of a user and their account are written in one transaction, on condition of the user's version: they never
differ. Version 0.1.0 kept the hash in the user found by address. It is read there, and the user's next change moves it.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from larder import aws
from larder.accounts.addresses import canonical
from larder.accounts.models import (
    CREDENTIAL_PROVIDER,
    Account,
    Credential,
    EmailTaken,
    Session,
    User,
)
from larder.clock import from_ms, to_epoch_seconds, to_ms
from larder.settings import settings

_USER = "user"
_ACCOUNT = f"account#{CREDENTIAL_PROVIDER}"
_SESSION = "session#"
_REMEMBERED = 1000

_holders: OrderedDict[str, str] = OrderedDict()
"""Whose sessions this instance has seen. It only says what to read: the answer rests on what the items hold now."""


def add(account: Account) -> None:
    """Store a new user. Raises EmailTaken."""
    new = {"ConditionExpression": "attribute_not_exists(pk)"}
    writes = [_put(item, new) for item in _user_items(account.user)]
    if not aws.write_together([*writes, *_put_credential(account)]):
        raise EmailTaken(account.user.email)


def get(user_id: str) -> User | None:
    item = _get(user_id, _USER)
    return None if item is None else _user(item)


def get_many(user_ids: Sequence[str]) -> list[User]:
    """Those of the users who exist, in no order."""
    table = settings().identity_table
    keys = [{"pk": user_id, "sk": _USER} for user_id in user_ids]
    return [
        _user(item)
        for batch in aws.in_batches(keys)
        for item in aws.batch_get({table: batch})[table]
    ]


def list_users() -> Iterator[User]:
    """Every user, in no order, page by page. Reads the whole table: for the operator, never on a request."""
    pages = (
        aws.dynamodb()
        .get_paginator("scan")
        .paginate(
            TableName=settings().identity_table,
            # One of a user's two items.
            FilterExpression="sk = :user AND NOT begins_with(pk, :by_email)",
            ExpressionAttributeValues=aws.serialize({":user": _USER, ":by_email": "email#"}),
        )
    )
    for page in pages:
        yield from (_user(aws.deserialize(item)) for item in page["Items"])


def get_by_email(email: str) -> User | None:
    item = _get(_by_email(email), _USER)
    return None if item is None else _user(item)


def get_account(email: str) -> Account | None:
    pk = _by_email(email)
    user, credential = aws.get_together(
        settings().identity_table, [{"pk": pk, "sk": _USER}, {"pk": pk, "sk": _ACCOUNT}]
    )
    return None if user is None else _account(user, credential)


def change(was: Account, becomes: Account, *, spending: str | None = None) -> Account | None:
    """Replace `was` by `becomes`, if it still is as it was; returns what is stored now, None when it was not.

    `spending` is the hash of a reset token that goes with the change: it is deleted, or nothing is changed. Raises
    EmailTaken.
    """
    stored, writes = _replacement(was, becomes)
    if spending is not None:
        exists = {"ConditionExpression": "attribute_exists(pk)"}
        writes.append(_delete(f"reset#{spending}", "reset", exists))
    return stored if aws.write_together(writes) else None


def remove(account: Account, *, now: datetime) -> bool:
    """Delete the user: no session of theirs counts from now on. False when they have changed meanwhile.

    A note stays for a while, by which is found what else there is of them: keys that the index did not show yet, and
    what they stored without a team.
    """
    user = account.user
    unchanged = _at_version(user)
    note = {"pk": "deleted", "sk": user.id, "deleted_at": to_ms(now)}
    return aws.write_together(
        [
            _delete(user.id, _USER, unchanged),
            _delete(_by_email(user.email), _USER, unchanged),
            _delete(_by_email(user.email), _ACCOUNT, {}),
            _put(note, {}),
        ]
    )


def deleted_users() -> Iterator[tuple[str, datetime]]:
    """Users whose deletion is noted, and since when."""
    for item in _query("deleted", ""):
        yield item["sk"], from_ms(item["deleted_at"])


def forget_deleted(user_id: str) -> None:
    _delete_item("deleted", user_id)


def add_session(session: Session) -> None:
    if not aws.put_new(settings().identity_table, _session_items(session)):
        raise AssertionError("two session tokens are alike")  # of 190 random bits


def find_session(token_hash: str) -> tuple[Session, User] | None:
    """The session of a token and its user, expired or of an old generation as it may be."""
    user_id = holder_of(token_hash)
    if user_id is None:
        return None
    table = settings().identity_table
    keys = [{"pk": user_id, "sk": _SESSION + token_hash}, {"pk": user_id, "sk": _USER}]
    items = {item["sk"]: item for item in aws.batch_get({table: keys})[table]}
    if len(items) < len(keys):
        _holders.pop(token_hash, None)
        return None
    return _session(items[_SESSION + token_hash]), _user(items[_USER])


def holder_of(token_hash: str) -> str | None:
    """Whose session a token is of, if it ever was one; whether it counts, only the session itself tells."""
    user_id = _holders.get(token_hash)
    if user_id is None:
        pointer = _get(_SESSION + token_hash, "session")
        if pointer is None:
            return None
        user_id = _holders[token_hash] = str(pointer["user_id"])
        if len(_holders) > _REMEMBERED:
            _holders.popitem(last=False)
    return user_id


def forget_holders() -> None:
    """Forget whose sessions this instance has seen."""
    _holders.clear()


def get_session(user_id: str, token_hash: str) -> Session | None:
    item = _get(user_id, _SESSION + token_hash)
    return None if item is None else _session(item)


def list_sessions(user_id: str) -> list[Session]:
    """Every stored session of a user, newest first; those that no longer count too."""
    sessions = [_session(item) for item in _query(user_id, _SESSION)]
    return sorted(sessions, key=lambda session: session.created_at, reverse=True)


def extend_session(session: Session) -> bool:
    """Store the new expiry. False when the session has been ended meanwhile."""
    record, holder = _session_items(session)
    exists = {"ConditionExpression": "attribute_exists(pk)"}
    return aws.write_together(
        [_put(record, _of_generation(session.generation)), _put(holder, exists)]
    )


def delete_session(user_id: str, token_hash: str) -> bool:
    """End a session of this user; False when they have no such session."""
    reply = aws.dynamodb().delete_item(
        TableName=settings().identity_table,
        Key=aws.serialize({"pk": user_id, "sk": _SESSION + token_hash}),
        ReturnValues="ALL_OLD",
    )
    if not reply.get("Attributes"):
        return False
    _delete_item(_SESSION + token_hash, "session")
    return True


def end_other_sessions(account: Account, kept: Session | None) -> bool:
    """Raise the user's generation, and that of the one session that stays. False when either has changed meanwhile,
    or when the session does not count any more.
    """
    generation = account.user.session_generation + 1
    user = replace(account.user, session_generation=generation)
    _, writes = _replacement(account, replace(account, user=user))
    if kept is not None:
        item, _ = _session_items(replace(kept, generation=generation))
        writes.append(_put(item, _of_generation(account.user.session_generation)))
    return aws.write_together(writes)


def add_reset_token(token_hash: str, user: User, *, expires_at: datetime) -> None:
    item = {
        "pk": f"reset#{token_hash}",
        "sk": "reset",
        "user_id": user.id,
        "password_version": user.password_version,
        "ends_at": to_ms(expires_at),
        "expires_at": to_epoch_seconds(expires_at),
    }
    _put_if(item, {})


def find_reset_token(token_hash: str) -> tuple[str, int, datetime] | None:
    """The user that a reset token is for, the version of the password that it may replace, and its expiry."""
    item = _get(f"reset#{token_hash}", "reset")
    if item is None:
        return None
    return item["user_id"], item["password_version"], from_ms(item["ends_at"])


def _replacement(was: Account, becomes: Account) -> tuple[Account, list[dict[str, Any]]]:
    """What is stored in the place of `was`, and the writes that store it if nothing has changed. Raises EmailTaken."""
    user = replace(becomes.user, version=was.user.version + 1)
    stored = replace(becomes, user=user)
    by_email, by_id = _user_items(user)
    unchanged = _at_version(was.user)
    writes = [_put(by_id, unchanged), *_put_credential(stored)]
    old_key = _by_email(was.user.email)
    stays = by_email["pk"] == old_key
    if was.credential is not None and not (stays and stored.credential is not None):
        writes.append(_delete(old_key, _ACCOUNT, {}))
    if stays:
        writes.append(_put(by_email, unchanged))
    else:
        if _get(by_email["pk"], _USER) is not None:
            raise EmailTaken(user.email)
        writes.append(_put(by_email, {"ConditionExpression": "attribute_not_exists(pk)"}))
        writes.append(_delete(old_key, _USER, unchanged))
    return stored, writes


def _by_email(email: str) -> str:
    return f"email#{canonical(email)}"


def _user_items(user: User) -> tuple[aws.Item, aws.Item]:
    """The user by address, and by id."""
    record = {
        "user_id": user.id,
        "email": user.email,
        "name": user.name,
        "image": user.image,
        "email_verified": user.email_verified,
        "created_at": to_ms(user.created_at),
        "updated_at": to_ms(user.updated_at),
        "session_generation": user.session_generation,
        "password_version": user.password_version,
        "version": user.version,
    }
    by_email = {"pk": _by_email(user.email), "sk": _USER, **record}
    return by_email, {"pk": user.id, "sk": _USER, **record}


def _put_credential(account: Account) -> list[dict[str, Any]]:
    """The write that stores the account record, if there is one."""
    user, credential = account.user, account.credential
    if credential is None:
        return []
    item = {
        "pk": _by_email(user.email),
        "sk": _ACCOUNT,
        "provider_id": CREDENTIAL_PROVIDER,
        "user_id": user.id,
        "password": credential.password_hash,
        "password_version": user.password_version,
        "created_at": to_ms(credential.created_at),
        "updated_at": to_ms(credential.updated_at),
    }
    return [_put(item, {})]


def _account(user_item: aws.Item, credential_item: aws.Item | None) -> Account:
    user = _user(user_item)
    if "password" in user_item:
        # Version 0.1.0 wrote it: what it does not know of, an account record, is older, if there is one.
        credential = Credential(
            password_hash=user_item["password"],
            created_at=user.created_at,
            updated_at=user.updated_at,
        )
        return Account(user=user, credential=credential)
    if credential_item is None or not _is_current(credential_item, user):
        return Account(user=user, credential=None)
    credential = Credential(
        password_hash=credential_item["password"],
        created_at=from_ms(credential_item["created_at"]),
        updated_at=from_ms(credential_item["updated_at"]),
    )
    return Account(user=user, credential=credential)


def _is_current(credential_item: aws.Item, user: User) -> bool:
    """A deployment that went back to version 0.1.0 for a while leaves account records of users who moved, changed
    their password or were deleted meanwhile.
    """
    return (credential_item["user_id"], credential_item["password_version"]) == (
        user.id,
        user.password_version,
    )


def _user(item: aws.Item) -> User:
    return User(
        id=item["user_id"],
        email=item["email"],
        name=item["name"],
        image=item.get("image"),
        email_verified=item["email_verified"],
        created_at=from_ms(item["created_at"]),
        updated_at=from_ms(item["updated_at"]),
        session_generation=item["session_generation"],
        password_version=item["password_version"],
        version=item["version"],
    )


def _session_items(session: Session) -> tuple[aws.Item, aws.Item]:
    """The session, and by which user it is found."""
    expires_at = to_epoch_seconds(session.expires_at)
    record = {
        "pk": session.user_id,
        "sk": _SESSION + session.token_hash,
        "id": session.id,
        "created_at": to_ms(session.created_at),
        "updated_at": to_ms(session.updated_at),
        "ends_at": to_ms(session.expires_at),
        "expires_at": expires_at,
        "generation": session.generation,
        "remembered": session.remembered,
        "ip_address": session.ip_address,
        "user_agent": session.user_agent,
    }
    holder = {
        "pk": _SESSION + session.token_hash,
        "sk": "session",
        "user_id": session.user_id,
        "expires_at": expires_at,
    }
    return record, holder


def _session(item: aws.Item) -> Session:
    return Session(
        id=item["id"],
        token_hash=item["sk"].removeprefix(_SESSION),
        user_id=item["pk"],
        created_at=from_ms(item["created_at"]),
        updated_at=from_ms(item["updated_at"]),
        expires_at=from_ms(item["ends_at"]),
        generation=item["generation"],
        remembered=item["remembered"],
        ip_address=item.get("ip_address"),
        user_agent=item.get("user_agent"),
    )


def _at_version(user: User) -> dict[str, Any]:
    return {
        "ConditionExpression": "version = :version",
        "ExpressionAttributeValues": aws.serialize({":version": user.version}),
    }


def _of_generation(generation: int) -> dict[str, Any]:
    return {
        "ConditionExpression": "generation = :generation",
        "ExpressionAttributeValues": aws.serialize({":generation": generation}),
    }


def _put(item: aws.Item, condition: dict[str, Any]) -> dict[str, Any]:
    put = {"TableName": settings().identity_table, "Item": aws.serialize(item), **condition}
    return {"Put": put}


def _delete(pk: str, sk: str, condition: dict[str, Any]) -> dict[str, Any]:
    key = aws.serialize({"pk": pk, "sk": sk})
    return {"Delete": {"TableName": settings().identity_table, "Key": key, **condition}}


def _put_if(item: aws.Item, condition: dict[str, Any]) -> bool:
    try:
        aws.dynamodb().put_item(**_put(item, condition)["Put"])
    except aws.ClientError as error:
        if aws.error_code(error) == "ConditionalCheckFailedException":
            return False
        raise
    return True


def _delete_item(pk: str, sk: str) -> None:
    aws.dynamodb().delete_item(
        TableName=settings().identity_table, Key=aws.serialize({"pk": pk, "sk": sk})
    )


def _get(pk: str, sk: str) -> aws.Item | None:
    return aws.get_item(settings().identity_table, {"pk": pk, "sk": sk})


def _query(pk: str, prefix: str) -> Iterator[aws.Item]:
    condition, values = "pk = :pk", {":pk": pk}
    if prefix:
        condition += " AND begins_with(sk, :prefix)"
        values[":prefix"] = prefix
    return aws.query(settings().identity_table, condition, values, ConsistentRead=True)
