"""The table of API keys: one item per key, found by its stored form, indexed by id, user, team and expiry.

The metadata of a key is in an item of its own, so that a use of the key reads and writes little. Only `with_metadata`
and `all_with_metadata` read it.

Three attributes exist so that the same write verifies every key. `has_allowance` says whether `remaining` counts: it
decreases below 0 for unlimited keys. `refill_at` is when the next refill is due (`NEVER` without one). `window_ends_at`
is when the window of the rate limit ends.

A deployment can rename attributes of a key, for other programs that read the table, but not keys of the table and of
its indexes, because the template fixes them. `API_KEYS` translates the names; this module uses the default ones.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from itertools import islice
from types import MappingProxyType
from typing import Any, TypeVar

from larder.api_keys.models import (
    FETCH,
    UNREAD,
    ApiKey,
    Daily,
    KeyPage,
    KeysOfHolder,
    LoginCode,
    Permissions,
)
from larder.clock import from_ms, to_ms
from larder.concurrency import attempts, in_parallel, map_concurrently
from larder.conditions import (
    Attribute,
    Condition,
    above,
    at_least,
    at_most,
    begins_with,
    below,
    contains,
    equals,
    exists,
    missing,
    size_below,
)
from larder.errors import Contention, KeyLimitReached, TryAgain
from larder.instance import Remembered
from larder.records import Form
from larder.settings import SettingsError, environment_name, settings
from larder.tables import (
    IDENTITY,
    TEAMS,
    Found,
    Item,
    Key,
    Read,
    Table,
    Write,
    commit,
    commit_returning,
    failed_writes,
    in_batches,
    read_together,
)

_OPTION = "api_key_schema"
_KEY = Form(ApiKey, apart=("team_id", "metadata", "remaining", "refill_due_at"))
_CODE = Form(LoginCode, apart=("code_hash",))

_RENAMABLE = (
    *("name", "start", "prefix", "refillInterval", "refillAmount", "lastRefillAt", "enabled"),
    *("rateLimitEnabled", "rateLimitTimeWindow", "rateLimitMax", "requestCount", "remaining"),
    *("lastRequest", "updatedAt", "permissions", "metadata"),
)
_NAMES = {**_KEY.names, "remaining": "remaining", "metadata": "metadata"}
_ATTRIBUTES = {field: _NAMES[field] for field in _RENAMABLE}
"""Fields of the record whose attributes can be renamed, and the default names of these attributes."""

_FIXED = {*_NAMES.values()} - {*_ATTRIBUTES.values()} | {
    *("team_id", "rule_team", "has_metadata", "has_allowance", "refill_at", "expiring", "owned_by"),
    *("not_before", "uses", "base_url", "paused_team"),
}


def attribute_names() -> Mapping[str, str]:
    """The renamed attributes: the default name of each, and its name in this deployment."""
    return _parse(settings().api_key_schema)


@cache
def _parse(option: str) -> Mapping[str, str]:
    def error(rule: str) -> SettingsError:
        return SettingsError(f"{environment_name(_OPTION)} {rule}")

    try:
        renamed = json.loads(option)
    except ValueError:
        raise error("must be JSON") from None
    if not isinstance(renamed, dict) or not all(isinstance(name, str) for name in renamed.values()):
        raise error("must map fields of the record to names of attributes")
    if unknown := sorted(renamed.keys() - _ATTRIBUTES.keys()):
        raise error(f"cannot rename {', '.join(unknown)}; it can {', '.join(_ATTRIBUTES)}")
    names = [renamed.get(field, attribute) for field, attribute in _ATTRIBUTES.items()]
    if "" in names or len({*names, *_FIXED}) < len(names) + len(_FIXED):
        raise error("must give each attribute a name that no other has")
    return MappingProxyType({_ATTRIBUTES[field]: name for field, name in renamed.items()})


API_KEYS = Table(
    lambda: settings().api_keys_table, "key_hash", renamed=attribute_names, shared=True
)
_BESIDE_KEYS = Table(API_KEYS.name, "key_hash")
"""The same table for items that are not keys, without renamed attributes: login codes and the clean-up claim."""

T = TypeVar("T")

NEVER = 10**15
_CLEAN_UP = "#clean-up"
_LOGIN_CODE = "#login-code#"
_ID_TOKEN = "#id-token#"  # noqa: S105  # a kind of item
"""Before the hash of an id token's issuer and id: the item that counts the keys that it has given."""
_KEYS_OF = "#keys-of#"
"""Before the id of a user or team: the item with the set `hashes` of their keys. Each change raises its `version`.

The set contains every key of the user, except in two cases: the user has created none since version 0.1.0, or has more
than `_MOST_COUNTED`. It can also contain keys that were deleted or have expired. It is brought up to date when it is
full.
"""

_METADATA = "#metadata#"
"""Before a key's hash: the item with the metadata of a key that has `has_metadata`. One transaction writes both."""

_MOST_COUNTED = 1000
"""The most hashes in one set. It keeps the item below DynamoDB's 400 KB, also with keys that are not hashed."""
_next_claim_at: Remembered[str, datetime] = Remembered(1)
"""When this instance tries again to claim the clean-up. Trying at every request would cost a write each."""

_TEAM = "team"
"""The `owned_by` of a team's own key, whose `user_id` is the team: for programs that read the table."""

EXPIRING = "expiring"
"""The partition of the index `by_expiry` with what expires, in order of expiry. Most keys have no expiry."""

_PAUSED = "paused"
"""The partition of the index `by_expiry` with the notes of paused keys."""
_PAUSED_KEY = "#paused#"
"""Before the id of a public read key: the note that owners get a mail because it has reached its bound."""


def _attributes(key: ApiKey) -> Item:
    """The attributes of the item. None values are not stored."""
    of_rule = key.rule_id is not None
    return {
        **_KEY.item(key),
        "team_id": None if of_rule else key.team_id,
        # Not `team_id`, because the index `by_team` lists keys for people, and a team can have thousands of tokens.
        "rule_team": key.team_id if of_rule else None,
        "has_metadata": None if key.metadata is None else True,
        "has_allowance": key.remaining is not None,
        "remaining": key.remaining or 0,
        "refill_at": NEVER if key.refill_due_at is None else to_ms(key.refill_due_at),
        "expiring": None if key.expires_at is None else EXPIRING,
        "owned_by": _TEAM if key.owned_by_team else None,
    }


def _changes(old: ApiKey, new: ApiKey) -> Item:
    """The attributes that differ, with their new values."""
    before = _attributes(old)
    return {name: value for name, value in _attributes(new).items() if value != before[name]}


def _from_item(item: Item) -> ApiKey:
    refill_at = item["refill_at"]
    return _KEY.record(
        item,
        team_id=item.get("rule_team", item.get("team_id")),
        metadata=_metadata_in(item),
        remaining=item["remaining"] if item["has_allowance"] else None,
        refill_due_at=None if refill_at == NEVER else from_ms(refill_at),
    )


def _metadata_in(item: Item) -> Any:
    """The metadata in its item or, if version 0.1.0 stored it, in that of the key. There, it is the newest."""
    if "metadata" in item:
        return json.loads(item["metadata"])
    return UNREAD if "has_metadata" in item else None


def _set_metadata(key: ApiKey) -> Write:
    item = _METADATA + key.key_hash
    if key.metadata is None:
        return API_KEYS.delete(item)
    return API_KEYS.update(item, set={"metadata": json.dumps(key.metadata)})


def _key_of(item: Item) -> ApiKey | None:
    """None for an empty item, and for an item that is not a key."""
    return _from_item(item) if "id" in item else None


def add(
    key: ApiKey,
    *also: Write,
    spending: LoginCode | None = None,
    generation: int | None = None,
    limited: bool = True,
    changes_team: bool = False,
) -> bool:
    """Store a new key. False if its user does not exist or has another password version than the key, the team that
    owns it does not exist, the key exists already, the login code is not valid, or one of `also` fails.

    The transaction checks the user or team. So a key created during their deletion is either found by that deletion or
    not created. With `spending`, the transaction also deletes this login code, and fails if the code is gone or the
    user has changed the password or ended the sessions since the code was made. With `generation`, it fails if the
    user's sessions of this generation have ended. `also` are other writes of the transaction. With `changes_team`, they
    change the item of the team, on condition that it exists.

    `limited` is False for a key that replaces another of its holder: it counts against twice the limit, so that keys
    can be rotated at the limit. Raises KeyLimitReached.
    """
    writes = [API_KEYS.put(_attributes(key), when=missing("key_hash"))]
    if key.has_user:
        user = _user_condition(key, spending, generation)
        writes.append(IDENTITY.check(key.user_id, "user", when=user))
    elif not changes_team:
        writes.append(_team_exists(key.holder_id))
    if spending is not None:
        code = _LOGIN_CODE + spending.code_hash
        writes.append(_BESIDE_KEYS.delete(code, when=exists("key_hash")))
    if key.metadata is not None:
        writes.append(_set_metadata(key))
    return _commit_counted(key, *writes, *also, limited=limited, now=key.created_at)


def adopt(old: ApiKey, new: ApiKey, *also: Write, now: datetime) -> bool:
    """Give a key of a user to its team. False if it has changed since it was read, the team does not exist, or one of
    `also` fails.

    The transaction moves the key from the set of its user to that of the team, so that no deletion of the user's keys
    finds it. Raises KeyLimitReached.
    """
    of_user = keys_of(old.user_id)
    item = _KEYS_OF + old.user_id
    at_version = _at_version(of_user.version)
    if of_user.version is None:
        left = _BESIDE_KEYS.check(item, when=at_version)
    else:
        left = _BESIDE_KEYS.update(
            item, discard={"hashes": {old.key_hash}}, add={"version": 1}, when=at_version
        )
    update = API_KEYS.update(old.key_hash, set=_changes(old, new), when=_unchanged(old))
    return _commit_counted(new, update, left, _team_exists(new.holder_id), *also, now=now)


def _commit_counted(key: ApiKey, *writes: Write, limited: bool = True, now: datetime) -> bool:
    """Commit, and add the key to the set of its holder. False if one of the writes fails. Raises KeyLimitReached."""
    most = settings().max_keys_per_user
    if not limited:
        most = 2 * most + 1
    counted = exists("version") & (missing("hashes") | size_below(hashes=most))
    count = _BESIDE_KEYS.update(
        _KEYS_OF + key.holder_id, add={"hashes": {key.key_hash}, "version": 1}, when=counted
    )
    for _ in attempts():
        failed = failed_writes(count, *writes)
        if failed != [count]:
            return not failed
        if _recount(key.holder_id, now=now) >= most:
            raise KeyLimitReached(most)
    raise TryAgain


def _team_exists(team_id: str) -> Write:
    return TEAMS.check(team_id, "team", when=exists("pk"))


def putting(key: ApiKey) -> Write:
    """The write that stores the token of a rule, for the transaction of an exchange. Nothing counts these."""
    return API_KEYS.put(_attributes(key), when=missing("key_hash"))


def spending(token_hash: str, *, uses: int, expires_at: datetime) -> Write:
    """The write that counts one use of an id token. It fails after `uses`.

    `token_hash` is the hash of the token's issuer and id. The item is in the index `by_expiry`, so that it is deleted
    with expired keys.
    """
    item = {"expires_at": to_ms(expires_at), "expiring": EXPIRING}
    unspent = missing("uses") | below(uses=uses)
    return _BESIDE_KEYS.update(_ID_TOKEN + token_hash, set=item, add={"uses": 1}, when=unspent)


def is_spent(token_hash: str, *, uses: int) -> bool:
    """Whether an id token has given all of its keys."""
    item = _BESIDE_KEYS.get(_ID_TOKEN + token_hash)
    return item is not None and int(item["uses"]) >= uses


def _user_condition(key: ApiKey, code: LoginCode | None, generation: int | None) -> Condition:
    """The user exists, and has the same password version and session generation as when the key or code was made.

    A code also needs that the user has access now (`User.has_access`). A session was checked when it was read.
    """
    if code is None:
        user = equals(password_version=key.password_version)
    else:
        ends_later = missing("access_until") | above(access_until=to_ms(key.created_at))
        user = exists("pk") & missing("suspended_at") & ends_later
        # Codes of version 0.1.0 have neither number. They stay valid for their five minutes.
        if code.password_version is None:
            return user
        user &= equals(password_version=key.password_version)
        generation = code.session_generation
    return user if generation is None else user & equals(session_generation=generation)


def still_signed_in(user_id: str, generation: int) -> Write:
    """A check that fails the transaction if the user's sessions of this generation have ended."""
    return IDENTITY.check(user_id, "user", when=equals(session_generation=generation))


def keys_not_ended(user_id: str, keys_from: int) -> Write:
    """A check that fails the transaction if the user was deleted, or a reset has ended their keys since."""
    reset = equals(keys_from=keys_from)
    # Version 0.1.0 did not store it.
    return IDENTITY.check(
        user_id, "user", when=reset if keys_from else exists("pk") & (missing("keys_from") | reset)
    )


def team_exists(team_id: str) -> bool:
    return TEAMS.get(team_id, "team") is not None


def password_version_of(user_id: str) -> int | None:
    """None if the user does not exist."""
    user = IDENTITY.get(user_id, "user")
    return None if user is None else user["password_version"]


def _recount(holder_id: str, *, now: datetime) -> int:
    """Bring the set of the holder's keys up to date, and return how many it contains. Deletes expired keys.

    Keys that version 0.1.0 created are only in the index, and are added.
    """
    keys = keys_of(holder_id, most=_MOST_COUNTED)
    found = _held(keys)
    ended = [key for key in found if key.expires_at is not None and key.expires_at <= now]
    deleted = map_concurrently(lambda key: delete_if_unusable(key.key_hash, now=now), ended)
    gone = {key.key_hash for key, done in zip(ended, deleted, strict=True) if done}
    living = {key.key_hash for key in found} - gone
    changes = {"hashes": living or None, "version": (keys.version or 0) + 1}
    # If another request has changed the set, the caller's transaction fails again or succeeds with that set.
    commit(_BESIDE_KEYS.update(_KEYS_OF + holder_id, set=changes, when=_at_version(keys.version)))
    return len(living)


def keys_of(holder_id: str, *, most: int | None = None) -> KeysOfHolder:
    """The keys of a user or team, `most` of them from the index."""
    held = equals(user_id=holder_id)
    with in_parallel(_BESIDE_KEYS.get, _KEYS_OF + holder_id) as reading:
        indexed = frozenset(islice(_hashes("by_user", held), most))
    item = reading.result() or {}
    return KeysOfHolder(
        holder_id=holder_id,
        indexed=indexed,
        counted=frozenset(item.get("hashes", ())),
        version=item.get("version"),
    )


def _held(keys: KeysOfHolder) -> list[ApiKey]:
    """Those keys that exist and are still the holder's: the index shows late that a team has adopted one."""
    known = sorted(keys.indexed | keys.counted)
    found = [_from_item(item) for item in API_KEYS.get_many([(each,) for each in known])]
    return [key for key in found if key.holder_id == keys.holder_id]


def delete_all(keys: KeysOfHolder) -> bool:
    """Delete the keys of a user or team, and the set that was read with them. False if a key was created or adopted
    since.

    One transaction, or several at once if there are more keys than one can delete. If other transactions keep it from
    succeeding, as when the keys are in constant use, the keys are deleted one by one.
    """
    # A batch has an even number of writes, so it has both of a key. One by one, the metadata goes first: if the next
    # write fails, the key is still found when the deletion is repeated.
    still_held = missing("key_hash") | equals(user_id=keys.holder_id)
    writes = [
        write
        for each in sorted(keys.indexed | keys.counted)
        for write in (API_KEYS.delete(_METADATA + each), API_KEYS.delete(each, when=still_held))
    ]
    when = _at_version(keys.version)
    writes.append(_BESIDE_KEYS.delete(_KEYS_OF + keys.holder_id, when=when))

    def delete_together(batch: Sequence[Write]) -> bool:
        try:
            return commit(*batch)
        except Contention:
            return all(commit(write) for write in batch)

    return all(map_concurrently(delete_together, in_batches(writes)))


def delete_bound_to(team_id: str, keys: KeysOfHolder) -> None:
    """Delete those of a user's keys that are bound to the team."""
    bound = [key.key_hash for key in _held(keys) if key.team_id == team_id]
    still_held = equals(user_id=keys.holder_id)
    map_concurrently(lambda key_hash: _delete(key_hash, still_held), bound)


def _at_version(version: int | None) -> Condition:
    return missing("version") if version is None else equals(version=version)


def add_login_code(code: LoginCode) -> None:
    """Store a login code. It is in the index `by_expiry`, so that it is deleted with expired keys."""
    item = {"key_hash": _LOGIN_CODE + code.code_hash, **_CODE.item(code), "expiring": EXPIRING}
    commit(_BESIDE_KEYS.put(item))


def find_login_code(code_hash: str) -> LoginCode | None:
    item = _BESIDE_KEYS.get(_LOGIN_CODE + code_hash)
    return None if item is None else _CODE.record(item, code_hash=code_hash)


def use(
    key_hash: str, required: Permissions, *, now: datetime, renewing: ApiKey | None = None
) -> tuple[bool, ApiKey | None]:
    """Count one use of a key if it passes every rule, in one conditional write.

    Returns whether the key passed, and the stored key (None if it does not exist). A failed condition changes nothing
    and returns the stored item, so that a refusal needs no second call.

    The write also fails if the window has ended or a refill is due. In that case call again with the returned key as
    `renewing`: the write begins a new window or refills the allowance, and counts the use. It fails if another request
    was first.
    """
    moment = to_ms(now)
    changes: Item = {"last_request": moment}
    added: dict[str, int] = {}
    when = _may_be_used(required, moment)
    if renewing is not None and renewing.refill_is_due(now):
        before, after = _attributes(renewing), _attributes(renewing.refilled(now))
        # Added, not set, because instances with slower clocks count uses in the meantime. If an operator has raised
        # `remaining`, the condition fails, so that the sum cannot exceed MAX_NUMBER.
        when &= equals(refill_at=before["refill_at"]) & at_most(remaining=before["remaining"])
        added["remaining"] = after["remaining"] - before["remaining"] - 1
        changes["refill_at"] = after["refill_at"]
        changes["last_refill_at"] = after["last_refill_at"]
    else:
        when &= equals(has_allowance=False) | (above(remaining=0) & at_least(refill_at=moment))
        added["remaining"] = -1
    if renewing is not None and renewing.window_has_ended(now):
        when &= equals(window_ends_at=to_ms(renewing.window_ends_at))
        changes["request_count"] = 1
        changes["window_ends_at"] = moment + renewing.rate_limit.window_ms
    else:
        below_limit = equals(rate_limit_enabled=False) | below(
            request_count=Attribute("rate_limit_max")
        )
        when &= above(window_ends_at=moment) & below_limit
        added["request_count"] = 1
    passed, item = commit_returning(API_KEYS.update(key_hash, set=changes, add=added, when=when))
    return passed, _key_of(item)


def note_use(key_hash: str, required: Permissions, *, now: datetime, every: timedelta) -> bool:
    """Record the time of a use of a key without allowance and rate limit, at most once in `every`.

    Returns False, and changes nothing, if the key does not pass every rule, or another request has recorded a use.
    """
    when = _may_be_used(required, to_ms(now))
    when &= equals(has_allowance=False, rate_limit_enabled=False)
    when &= missing("last_request") | at_most(last_request=to_ms(now - every))
    return commit(API_KEYS.update(key_hash, set={"last_request": to_ms(now)}, when=when))


def _may_be_used(required: Permissions, moment: int) -> Condition:
    """The key passes the rules that are not about the number of its uses."""
    when = exists("key_hash") & equals(enabled=True)
    when &= missing("expires_at") | above(expires_at=moment)
    for resource, actions in required.items():
        for action in actions:
            held = contains(("permissions", resource), action)
            if (resource, action) == ("artifacts", FETCH):
                held |= contains(("permissions", resource), "read")
            when &= held
    return when


def take(
    key: ApiKey, daily: Daily, today: str, *, requests: int, size_bytes: int
) -> tuple[bool, ApiKey | None]:
    """Count what a public read key gives. Returns whether it may, and the key as it was if not.

    `daily` is what the key had when it was read. It is the condition that the counts of the day stay within the bounds.
    """
    if daily.day is None or daily.day < today:
        counts: Item = {"day": today, "day_requests": requests, "day_bytes": size_bytes}
        first = exists("key_hash") & (missing("day") | below(day=today))
        write = API_KEYS.update(key.key_hash, set=counts, when=first)
    else:
        within = at_most(
            day_requests=daily.max_requests - requests, day_bytes=daily.max_bytes - size_bytes
        )
        within &= equals(day=today) & (missing("paused_on") | below(paused_on=today))
        added = {"day_requests": requests, "day_bytes": size_bytes}
        write = API_KEYS.update(key.key_hash, add=added, when=within)
    passed, item = commit_returning(write)
    return passed, _key_of(item)


def pause(key: ApiKey, today: str, *, base_url: str, now: datetime) -> None:
    """Pause a public read key for the day, and note that the owners of its team get a mail: once a day."""
    unpaused = exists("key_hash") & (missing("paused_on") | below(paused_on=today))
    note = {"expiring": _PAUSED, "expires_at": to_ms(now), "base_url": base_url, "day": today}
    commit(
        API_KEYS.update(key.key_hash, set={"paused_on": today}, when=unpaused),
        _BESIDE_KEYS.update(f"{_PAUSED_KEY}{key.id}", set={**note, "paused_team": key.team_id}),
    )


def paused_notes() -> Iterator[tuple[str, str, str, str]]:
    """The id of each public read key of whose pause no mail was sent, its team, the day and the origin of links."""
    for key_hash in _hashes("by_expiry", equals(expiring=_PAUSED)):
        item = _BESIDE_KEYS.get(key_hash)
        if item is not None:
            key_id = key_hash.removeprefix(_PAUSED_KEY)
            yield key_id, item["paused_team"], item["day"], item["base_url"]


def delete_paused_note(key_id: str, day: str) -> None:
    commit(_BESIDE_KEYS.delete(f"{_PAUSED_KEY}{key_id}", when=equals(day=day)))


def change(old: ApiKey, new: ApiKey, *also: Write) -> ApiKey | None:
    """Write the attributes that differ, and no others, so that concurrent uses are still counted.

    `also` are other writes of the transaction. Metadata in the item of the key is moved to its own.

    Returns the stored key. Returns None, and changes nothing, if the key is gone or another request has changed it
    since it was read: together, the two could leave half of a refill or of a rate limit.
    """
    changes = _changes(old, new)
    if "has_allowance" in changes:
        # Without an allowance, the stored number has decreased below 0, so it must be written too.
        changes["remaining"] = new.remaining or 0
    writes = list(also)
    in_key = old.metadata is not None and old.metadata is not UNREAD
    if in_key or new.metadata != old.metadata:
        changes |= {"metadata": None, "has_metadata": None if new.metadata is None else True}
        writes.append(_set_metadata(new))
    if not commit(API_KEYS.update(old.key_hash, set=changes, when=_unchanged(old)), *writes):
        return None
    # A transaction returns no items, and the counts of uses may have changed.
    return get(old.key_hash)


def change_if_same(old: ApiKey, new: ApiKey) -> bool:
    """Write the attributes that differ. False if the key has changed since it was read."""
    update = API_KEYS.update(old.key_hash, set=_changes(old, new), when=_unchanged(old))
    return commit(update)


def ending(key: ApiKey, expires_at: datetime, *, now: datetime) -> Write:
    """The write that gives a key another expiry. It fails if the key has changed since it was read."""
    changes = {"expires_at": to_ms(expires_at), "expiring": EXPIRING, "updated_at": to_ms(now)}
    return API_KEYS.update(key.key_hash, set=changes, when=_unchanged(key))


def deleting(key: ApiKey) -> tuple[Write, Write]:
    """The writes that delete a key and its metadata. They fail if the key has changed since it was read."""
    return _delete_both(key.key_hash, _unchanged(key))


def _unchanged(key: ApiKey) -> Condition:
    """Each change gives the key another time. Uses do not."""
    return equals(updated_at=to_ms(key.updated_at))


def get(key_hash: str) -> ApiKey | None:
    item = API_KEYS.get(key_hash)
    return None if item is None else _key_of(item)


def reading(key_hash: str, *, metadata: bool = False) -> Read[ApiKey | None]:
    """Reads the same as `get`, and with `metadata` the same as `with_metadata`."""
    keys: list[Key] = [(key_hash,), (_METADATA + key_hash,)]

    def parse(found: Found) -> ApiKey | None:
        items = {item["key_hash"]: item for item in found[API_KEYS]}
        key = _key_of(items.get(key_hash, {}))
        if key is None or key.metadata is not UNREAD or not metadata:
            return key
        return replace(key, metadata=_metadata_in(items.get(_METADATA + key_hash, {})))

    return Read({API_KEYS: keys if metadata else keys[:1]}, parse)


def get_with(key_hash: str, other: Read[T], *, metadata: bool) -> tuple[ApiKey | None, T]:
    """What `reading` and another read find, in one request."""
    return read_together(reading(key_hash, metadata=metadata), other)


def with_metadata(key: ApiKey) -> ApiKey:
    """The key with its metadata; without it if it was deleted after the key was read."""
    if key.metadata is not UNREAD:
        return key
    return replace(key, metadata=_metadata_in(API_KEYS.get(_METADATA + key.key_hash) or {}))


def all_with_metadata(keys: Iterable[ApiKey]) -> list[ApiKey]:
    """Like `with_metadata`, with one call for a hundred keys."""
    found = list(keys)
    items = API_KEYS.get_many(
        [(_METADATA + key.key_hash,) for key in found if key.metadata is UNREAD]
    )
    read = {item["key_hash"]: _metadata_in(item) for item in items}
    return [
        replace(key, metadata=read.get(_METADATA + key.key_hash)) if key.metadata is UNREAD else key
        for key in found
    ]


def find_by_id(key_id: str) -> ApiKey | None:
    """Find a key by its id. The index lags by milliseconds; the item itself is read from the table."""
    for item in API_KEYS.query(equals(id=key_id), index="by_id"):
        return get(item["key_hash"])
    return None


def ids_from(beginning: str) -> Iterator[str]:
    """The ids that begin with this. Reads the ids of all keys, because an index is found by whole ids only."""
    yield from (item["id"] for item in API_KEYS.scan(begins_with(id=beginning), index="by_id"))


def list_by_holder(holder_id: str) -> list[ApiKey]:
    """Every key of one user, or that one team owns, oldest first."""
    keys = _oldest_first(_hashes("by_user", equals(user_id=holder_id)))
    # The index shows late that a team has adopted one.
    return [key for key in keys if key.holder_id == holder_id]


def page_by_holder(holder_id: str, *, limit: int, offset: int) -> KeyPage:
    """At most `limit` keys of one user, or that one team owns, oldest first, after the first `offset` ones."""
    return _page("by_user", equals(user_id=holder_id), limit, offset)


def page_by_team(team_id: str, *, limit: int, offset: int) -> KeyPage:
    """At most `limit` keys that are bound to the team, in the order of the index, after the first `offset` ones."""
    return _page("by_team", equals(team_id=team_id), limit, offset)


def _page(index: str, where: Condition, limit: int, offset: int) -> KeyPage:
    end = offset + limit
    # The index has the order, so that only the keys of the page are read.
    hashes = [*islice(_hashes(index, where, page_size=end + 1), end + 1)]
    return KeyPage(keys=tuple(_oldest_first(hashes[offset:end])), has_more=len(hashes) > end)


def _oldest_first(hashes: Iterable[str]) -> list[ApiKey]:
    found = API_KEYS.get_many([(key_hash,) for key_hash in hashes])
    return sorted((_from_item(item) for item in found), key=lambda key: key.created_at)


def list_by_team(team_id: str) -> list[ApiKey]:
    """Every key that is bound to the team, oldest first."""
    return _oldest_first(bound_to(team_id))


def bound_to(team_id: str) -> Iterator[str]:
    """The hashes of the keys that are bound to the team. The index lags by milliseconds."""
    yield from _hashes("by_team", equals(team_id=team_id))


def expired(*, now: datetime) -> Iterator[str]:
    """The hashes of expired keys, oldest first. The index can lag, so delete on condition."""
    yield from _hashes("by_expiry", equals(expiring=EXPIRING) & at_most(expires_at=to_ms(now)))


def claim_clean_up(*, now: datetime, every_s: int) -> bool:
    """Claim the clean-up. Only one instance gets it, once in `every_s` seconds."""
    not_before = _next_claim_at.get(_CLEAN_UP)
    if not_before is not None and now < not_before:
        return False
    _next_claim_at[_CLEAN_UP] = next_at = now + timedelta(seconds=every_s)
    unclaimed = missing("not_before") | at_most(not_before=to_ms(now))
    claim = _BESIDE_KEYS.update(_CLEAN_UP, set={"not_before": to_ms(next_at)}, when=unclaimed)
    return commit(claim)


def disable(key_hash: str, *, now: datetime) -> ApiKey | None:
    """Disable a key and return it with its final counts. None if it does not exist."""
    changes = {"enabled": False, "updated_at": to_ms(now)}
    done, item = commit_returning(API_KEYS.update(key_hash, set=changes, when=exists("id")))
    return _from_item(item) if done else None


def delete(key_hash: str, *also: Write) -> bool:
    """Delete a key, and do other writes in the same transaction. False if the key does not exist."""
    existing = exists("key_hash")
    if not also:
        return _delete(key_hash, existing)
    return commit(*_delete_both(key_hash, existing), *also)


def delete_if_unusable(key_hash: str, *, now: datetime) -> bool:
    """Delete a key that has expired, or is used up and has no refill. False if it is neither, or gone."""
    used_up = equals(has_allowance=True, refill_at=NEVER) & at_most(remaining=0)
    ended = at_most(expires_at=to_ms(now)) | used_up
    return _delete(key_hash, ended)


def _delete(key_hash: str, when: Condition) -> bool:
    """Delete a key and its metadata on a condition. A key without metadata takes one write and no transaction."""
    alone = API_KEYS.delete(key_hash, when=when & missing("has_metadata"))
    done, item = commit_returning(alone)
    if done or "has_metadata" not in item:
        return done
    return commit(*_delete_both(key_hash, when))


def _delete_both(key_hash: str, when: Condition) -> tuple[Write, Write]:
    return API_KEYS.delete(key_hash, when=when), API_KEYS.delete(_METADATA + key_hash)


def _hashes(index: str, where: Condition, *, page_size: int | None = None) -> Iterator[str]:
    for item in API_KEYS.query(where, index=index, page_size=page_size):
        yield str(item["key_hash"])
