"""The tables of the deployment: how their items are read and written.

A write is a value until it is committed, alone or together with others:

    owner = TEAMS.update(team_id, "team", add={"owners": 1}, when=exists("pk"))
    member = TEAMS.put(item, when=missing("pk"))
    if not commit(owner, member): ...

So is a read whose items another repository reads along with its own, in one request: `read_together`.

Nothing here knows what the items mean; repositories do.
"""

import math
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from larder import deadline
from larder.aws import ClientError, Item, Throttled, deserialize, dynamodb, error_code, serialize
from larder.concurrency import attempts
from larder.conditions import Condition, Placeholders
from larder.errors import Contention, TryAgain
from larder.instance import Remembered
from larder.settings import settings

__all__ = ["ClientError", "Item"]

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
Key = tuple[str | int, ...]
"""The values of a table's key, in its order."""

BATCH_KEYS = 100
"""Keys that DynamoDB takes in one BatchGetItem."""

_BATCH_PAUSES_S = (0.1, 0.3, 0.9, 2.0)
"""The longest pauses before keys that DynamoDB refused are requested again. The shortest are half as long."""

COPIES_LAST_S = 5.0
_MOST_COPIES = 1000
_NONE: Mapping[str, Any] = MappingProxyType({})
_ALONE = {"Put": "put_item", "Update": "update_item", "Delete": "delete_item"}
_CONDITION_FAILED = "ConditionalCheckFailed"
_CONFLICT = "TransactionConflict"


class Write:
    """A write of one item, or a check of it, and its condition. Nothing happens until `commit` gets it."""

    __slots__ = ("action", "arguments", "table")

    # No dataclass: functions that builds wait for import this module.
    def __init__(self, table: "Table", action: str, arguments: dict[str, Any]) -> None:
        self.table = table
        self.action = action
        self.arguments = arguments


class Table:
    """A DynamoDB table.

    `name` is called for each request, because tests change the options. `key` names the attributes of the key, the
    partition key first. `renamed` maps our names of attributes to those of the deployment, where they differ.
    `shared` says that all requests of a team read the same items of it.
    """

    def __init__(
        self,
        name: Callable[[], str],
        *key: str,
        renamed: Callable[[], Mapping[str, str]] = lambda: _NONE,
        shared: bool = False,
    ) -> None:
        self.name = name
        self.shared = shared
        self._key_attributes = key
        self._renamed = renamed

    def get(self, *key: str | int) -> Item | None:
        """Read one item, consistently."""
        reply = dynamodb().get_item(
            TableName=self.name(), Key=self.typed_key(key), ConsistentRead=True
        )
        return self.plain(reply["Item"]) if "Item" in reply else None

    def get_many(self, keys: Sequence[Key]) -> list[Item]:
        """Read any number of items, consistently, 100 per request. Returns those that exist, in any order."""
        return [item for batch in in_batches(keys) for item in batch_get({self: batch})[self]]

    def get_together(self, *keys: Key) -> list[Item | None]:
        """Read items in one transaction, in the order of the keys; None for one that does not exist.

        They show either all or none of what another transaction writes. A conflict with one is retried. Raises
        Contention if every attempt meets one.
        """
        gets: Any = [
            {"Get": {"TableName": self.name(), "Key": self.typed_key(key)}} for key in keys
        ]
        for _ in attempts():
            try:
                reply = dynamodb().transact_get_items(TransactItems=gets)
            except ClientError as error:
                if not _is_conflict(_reasons(error)):
                    raise
            else:
                return [
                    self.plain(found["Item"]) if "Item" in found else None
                    for found in reply["Responses"]
                ]
        raise Contention

    def query(
        self,
        where: Condition,
        *,
        index: str | None = None,
        consistent: bool = True,
        backwards: bool = False,
        only: Sequence[str] = (),
        page_size: int | None = None,
        after: Item | None = None,
    ) -> Iterator[Item]:
        """Yield every item that meets a condition on the key. A page is read when its first item is needed.

        The table is read consistently by default. An index cannot be: it follows the table by milliseconds. `only`
        lists the attributes to return.
        """
        while True:
            items, after = self.page(
                where,
                index=index,
                consistent=consistent,
                backwards=backwards,
                only=only,
                limit=page_size,
                after=after,
            )
            yield from items
            if after is None:
                return

    def page(
        self,
        where: Condition,
        *,
        index: str | None = None,
        consistent: bool = True,
        backwards: bool = False,
        keep: Condition | None = None,
        only: Sequence[str] = (),
        limit: int | None = None,
        after: Item | None = None,
    ) -> tuple[list[Item], Item | None]:
        """Read one page of a query, and return it with the `after` of the next page, or None if it is the last.

        Only the items that meet `keep` are returned, but the others fill the page, too. `after` holds the attributes of
        the table's key and of the index's key.
        """
        use = Placeholders(self._renamed())
        arguments: dict[str, Any] = {"KeyConditionExpression": where.render(use)}
        if index is not None:
            arguments["IndexName"] = index
        if consistent and index is None:
            arguments["ConsistentRead"] = True
        if backwards:
            arguments["ScanIndexForward"] = False
        if keep is not None:
            arguments["FilterExpression"] = keep.render(use)
        if only:
            arguments["ProjectionExpression"] = ", ".join(use.name(attribute) for attribute in only)
        if limit is not None:
            arguments["Limit"] = limit
        if after is not None:
            arguments["ExclusiveStartKey"] = serialize(after)
        reply = dynamodb().query(TableName=self.name(), **arguments, **_placeholders(use))
        last = reply.get("LastEvaluatedKey")
        items = [self.plain(item) for item in reply["Items"]]
        return items, None if last is None else deserialize(last)

    def scan(self, where: Condition, *, index: str | None = None) -> Iterator[Item]:
        """Yield every item that meets a condition. Reads the whole table or index: for the operator, never on a
        request."""
        use = Placeholders(self._renamed())
        arguments: dict[str, Any] = {"FilterExpression": where.render(use), **_placeholders(use)}
        if index is not None:
            arguments["IndexName"] = index
        while True:
            reply = dynamodb().scan(TableName=self.name(), **arguments)
            yield from (self.plain(item) for item in reply["Items"])
            if "LastEvaluatedKey" not in reply:
                return
            arguments["ExclusiveStartKey"] = reply["LastEvaluatedKey"]

    def was_empty(self) -> bool:
        """Whether there was no item when DynamoDB last counted, in the last six hours."""
        return int(dynamodb().describe_table(TableName=self.name())["Table"]["ItemCount"]) == 0

    def put(self, item: Mapping[str, Any], *, when: Condition | None = None) -> Write:
        """Store an item, and replace the one with the same key. Attributes that are None are left out."""
        renamed = self._renamed()
        named = {renamed.get(name, name): value for name, value in item.items()}
        return self._write("Put", when, Item=serialize(named))

    def update(
        self,
        *key: str | int,
        set: Mapping[str, Any] = _NONE,
        set_if_missing: Mapping[str, Any] = _NONE,
        add: Mapping[str, Any] = _NONE,
        discard: Mapping[str, Any] = _NONE,
        when: Condition | None = None,
    ) -> Write:
        """Change attributes of an item, or create it if it does not exist and `when` allows that.

        A value of None in `set` removes the attribute. `add` adds a number to a number, or members to a set. A missing
        attribute counts as 0 or as the empty set. `discard` takes members out of a set.
        """
        use = Placeholders(self._renamed())
        sets = [
            f"{use.name(name)} = {use.value(value)}"
            for name, value in set.items()
            if value is not None
        ]
        sets += [
            f"{use.name(name)} = if_not_exists({use.name(name)}, {use.value(value)})"
            for name, value in set_if_missing.items()
        ]
        clauses = {
            "SET": sets,
            "ADD": [f"{use.name(name)} {use.value(value)}" for name, value in add.items()],
            "DELETE": [f"{use.name(name)} {use.value(value)}" for name, value in discard.items()],
            "REMOVE": [use.name(name) for name, value in set.items() if value is None],
        }
        expression = " ".join(f"{verb} {', '.join(each)}" for verb, each in clauses.items() if each)
        return self._write(
            "Update", when, use, Key=self.typed_key(key), UpdateExpression=expression
        )

    def delete(self, *key: str | int, when: Condition | None = None) -> Write:
        """Delete an item. Without a condition it does not have to exist."""
        return self._write("Delete", when, Key=self.typed_key(key))

    def check(self, *key: str | int, when: Condition) -> Write:
        """Check a condition without a write. If it fails, the writes committed with it fail."""
        return self._write("ConditionCheck", when, Key=self.typed_key(key))

    def delete_each(self, items: Iterable[Item], has_time: Callable[[], bool]) -> bool:
        """Delete items one by one; False when there was no time for all of them."""
        for item in items:
            if not has_time():
                return False
            commit(self.delete(*(item[name] for name in self._key_attributes)))
        return True

    def typed_key(self, key: Key) -> dict[str, Any]:
        return serialize(dict(zip(self._key_attributes, key, strict=True)))

    def key_of(self, item: Item) -> Key:
        return tuple(item[name] for name in self._key_attributes)

    def plain(self, item: Mapping[str, Any]) -> Item:
        """Convert an item of a reply to plain values, with our names of the attributes."""
        found = deserialize(item)
        if not (renamed := self._renamed()):
            return found
        ours = {theirs: name for name, theirs in renamed.items()}
        return {ours.get(name, name): value for name, value in found.items()}

    def _write(
        self, action: str, when: Condition | None, use: Placeholders | None = None, **more: Any
    ) -> Write:
        use = use or Placeholders(self._renamed())
        if when is not None:
            more["ConditionExpression"] = when.render(use)
        arguments = {"TableName": self.name(), **more, **_placeholders(use)}
        return Write(self, action, arguments)


Found = Mapping[Table, Sequence[Item]]
"""Items that exist, by table, in any order."""


class Read(Generic[T]):
    """Items to read consistently, and what they mean. Nothing happens until `read_together` gets it."""

    __slots__ = ("keys", "parse")

    def __init__(self, keys: Mapping[Table, Sequence[Key]], parse: Callable[[Found], T]) -> None:
        self.keys = keys
        self.parse = parse


IDENTITY = Table(lambda: settings().identity_table, "pk", "sk", shared=True)
TEAMS = Table(lambda: settings().teams_table, "pk", "sk", shared=True)
ARTIFACTS = Table(lambda: settings().artifacts_table, "owner", "hash")
USAGE = Table(lambda: settings().usage_table, "owner", "day")
AUDIT = Table(lambda: settings().audit_table, "owner", "id")
OUTBOX = Table(lambda: settings().outbox_table, "box", "id")
RATE_LIMITS = Table(lambda: settings().rate_limits_table, "what", "window")
# The table of API keys is in its repository, because a deployment may rename its attributes.


def commit(*writes: Write) -> bool:
    """Do all writes and return True. If a condition fails, do none and return False.

    Several writes are one transaction. A conflict with another transaction is retried. Raises Contention if every
    attempt meets one.
    """
    return not failed_writes(*writes)


def failed_writes(*writes: Write) -> list[Write]:
    """Commit, and return the writes whose condition failed. The list is empty if all writes are done."""
    failed, _ = _send(writes)
    return failed


def commit_returning(write: Write) -> tuple[bool, Item]:
    """Commit one write, and return the result with the item; an empty one if there is no such item.

    The item is as the update leaves it, as it was before the delete, or as it is if the condition failed.
    """
    returned = "ALL_NEW" if write.action == "Update" else "ALL_OLD"
    failed, reply = _send(
        [write], ReturnValues=returned, ReturnValuesOnConditionCheckFailure="ALL_OLD"
    )
    return not failed, write.table.plain(reply.get("Item" if failed else "Attributes") or {})


_copies: Remembered[tuple[Table, Key], tuple[float, float, Item]] = Remembered(_MOST_COPIES)
"""Items of shared tables, and when their read began, by the monotonic and by the wall clock."""

_NO_COPY: tuple[float, float, Item] = (-math.inf, -math.inf, {})


def batch_get(
    keys: Mapping[Table, Sequence[Key]], *, takes_copies: bool = False
) -> dict[Table, list[Item]]:
    """Read up to 100 items of any tables in one consistent request. Returns those that exist, in any order.

    Keys that DynamoDB refuses, some or all, are requested again after pauses. Raises TryAgain if it keeps refusing
    some. With `takes_copies`, as soon as it refuses only items of shared tables, and this instance has read all of
    them in the last five seconds, these are returned.
    """
    tables = {table.name(): table for table in keys}
    found: dict[Table, list[Item]] = {table: [] for table in keys}
    request: dict[str, Any] = {
        name: {"Keys": [table.typed_key(key) for key in keys[table]], "ConsistentRead": True}
        for name, table in tables.items()
        if keys[table]
    }
    if not request:
        return found
    began = time.monotonic(), time.time()
    for pause_s in (*_BATCH_PAUSES_S, None):
        with suppress(Throttled):
            reply = dynamodb().batch_get_item(RequestItems=request)
            request = reply.get("UnprocessedKeys") or {}
            for name, items in reply["Responses"].items():
                found[tables[name]].extend(map(tables[name].plain, items))
        if takes_copies:
            refused = _refused(request, tables) if request else {}
            _remember(keys, found, refused, began)
            if request and _add_copies(found, refused):
                return found
        if not request:
            return found
        if pause_s is None or deadline.has_one_try():
            break
        time.sleep(random.uniform(pause_s / 2, pause_s))  # noqa: S311  # no secret depends on it
    raise TryAgain


def _refused(request: Mapping[str, Any], tables: Mapping[str, Table]) -> dict[Table, set[Key]]:
    """The keys of a request that DynamoDB has not carried out."""
    return {
        tables[name]: {tables[name].key_of(tables[name].plain(key)) for key in asked["Keys"]}
        for name, asked in request.items()
    }


def _remember(
    keys: Mapping[Table, Sequence[Key]],
    found: Found,
    refused: Mapping[Table, set[Key]],
    began: tuple[float, float],
) -> None:
    """Keep copies of the items of shared tables that are new, and forget those of items that no longer exist, so that a
    revoked key does not work again.
    """
    copies = {}
    for table, asked in keys.items():
        if not table.shared:
            continue
        exist = {table.key_of(item): (*began, item) for item in found[table]}
        for key, copy in exist.items():
            copies[table, key] = copy
        if len(exist) < len(asked):
            for key in {*asked} - exist.keys() - refused.get(table, set()):
                _copies.pop((table, key), None)
    _copies.remember(copies)


def _add_copies(found: dict[Table, list[Item]], refused: Mapping[Table, set[Key]]) -> bool:
    """Add copies of what DynamoDB refuses to `found`. Returns False, and adds none, if there is none of an item."""
    copies: list[tuple[Table, Item]] = []
    now, today = time.monotonic(), time.time()
    for table, keys in refused.items():
        for key in keys:
            began, began_today, item = _copies.get((table, key), _NO_COPY)
            # By both clocks: one may be set back, the other may stand still while Lambda freezes the instance.
            if now - began > COPIES_LAST_S or not 0 <= today - began_today <= COPIES_LAST_S:
                return False
            copies.append((table, item))
    # Imported here: DynamoDB refuses few requests.
    from larder.metrics import count_in_total

    count_in_total("CopiesUsed", tables=sorted({table.name() for table, _ in copies}))
    for table, item in copies:
        found[table].append(item)
    return True


def read_together(one: Read[A], other: Read[B], *, takes_copies: bool = False) -> tuple[A, B]:
    """Read the items of both in one request, of 100 items at most. Raises TryAgain like `batch_get`."""
    keys = {
        # DynamoDB refuses a key that is named twice.
        table: list(dict.fromkeys([*one.keys.get(table, ()), *other.keys.get(table, ())]))
        for table in (*one.keys, *other.keys)
    }
    found = batch_get(keys, takes_copies=takes_copies)
    return one.parse(_items_of(one, found)), other.parse(_items_of(other, found))


def _items_of(read: Read[Any], found: Found) -> Found:
    return {
        table: [item for item in found[table] if table.key_of(item) in keys]
        for table, keys in read.keys.items()
    }


def in_batches(keys: Sequence[T], size: int = BATCH_KEYS) -> Iterator[Sequence[T]]:
    for start in range(0, len(keys), size):
        yield keys[start : start + size]


def _send(writes: Sequence[Write], **more: Any) -> tuple[list[Write], Mapping[str, Any]]:
    """Returns the writes whose condition failed, and the reply."""
    for _ in attempts():
        try:
            if len(writes) == 1 and writes[0].action in _ALONE:
                call = getattr(dynamodb(), _ALONE[writes[0].action])
                return [], call(**writes[0].arguments, **more)
            transaction: Any = [{write.action: write.arguments} for write in writes]
            dynamodb().transact_write_items(TransactItems=transaction)
        except ClientError as error:
            reasons = _reasons(error)
            failed = [
                write
                for write, reason in zip(writes, reasons, strict=False)
                if reason == _CONDITION_FAILED
            ]
            if failed:
                return failed, error.response
            if not _is_conflict(reasons):
                raise
        else:
            return [], _NONE
    raise Contention


def _reasons(error: ClientError) -> list[str | None]:
    """Why each write failed, in their order: None, or "None" from DynamoDB, for one that did not."""
    code = error_code(error)
    if code != "TransactionCanceledException":
        return [code.removesuffix("Exception")]
    reasons: Any = error.response.get("CancellationReasons", [])
    return [reason.get("Code") for reason in reasons]


def _is_conflict(reasons: Iterable[str | None]) -> bool:
    """Whether another transaction is the only reason."""
    return {*reasons} <= {"None", None, _CONFLICT}


def _placeholders(use: Placeholders) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    if use.names:
        arguments["ExpressionAttributeNames"] = {
            placeholder: name for name, placeholder in use.names.items()
        }
    if use.values:
        arguments["ExpressionAttributeValues"] = serialize(use.values)
    return arguments
