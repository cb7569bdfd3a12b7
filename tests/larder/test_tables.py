"""Reading and writing tables: expressions, transactions and conflicts with other writers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import pytest

from larder import aws
from larder.conditions import (
    Attribute,
    Condition,
    above,
    at_least,
    at_most,
    begins_with,
    below,
    between,
    contains,
    equals,
    exists,
    missing,
    not_equals,
    one_of,
    size_below,
)
from larder.errors import Contention, TryAgain
from larder.settings import settings
from larder.tables import (
    ARTIFACTS,
    AUDIT,
    IDENTITY,
    OUTBOX,
    RATE_LIMITS,
    TEAMS,
    USAGE,
    Found,
    Item,
    Key,
    Read,
    Table,
    Write,
    batch_get,
    commit,
    commit_returning,
    failed_writes,
    read_together,
)
from tests.default_template import template
from tests.faults import Answer, answering, error, refusing, reply
from tests.hooks import hooked

pytestmark = pytest.mark.usefixtures("aws_in_memory")

ADA: Item = {
    "pk": "team",
    "sk": "ada",
    "role": "owner",
    "role#2": "owner",
    "low": 4,
    "joined#at": 5,
    "tags": {"a", "b"},
    "limits": {"a#b": ["read"]},
}


def put(item: Item, table: Table = TEAMS) -> None:
    assert commit(table.put(item))


@pytest.fixture
def ada(aws_in_memory: None) -> None:
    put(ADA)


TABLES = {
    "identity": IDENTITY,
    "teams": TEAMS,
    "artifacts": ARTIFACTS,
    "usage": USAGE,
    "audit": AUDIT,
    "outbox": OUTBOX,
    "rate limits": RATE_LIMITS,
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_each_table_has_its_key_of_the_template(table: Table) -> None:
    (described,) = (one for one in template().tables if one.name == table.name())
    schema = described.create_table["KeySchema"]
    names = {one["KeyType"]: one["AttributeName"] for one in schema}
    assert table.typed_key(("hash", "range")) == {names["HASH"]: {"S": "hash"}, names["RANGE"]: {"S": "range"}}


class TestReads:
    def test_an_item_is_read_as_it_was_written_without_none_values(self) -> None:
        put({**ADA, "left": None})
        assert TEAMS.get("team", "ada") == ADA
        assert TEAMS.get("team", "bob") is None

    def test_more_items_than_fit_into_one_request_take_several(self) -> None:
        for number in range(101):
            put({"pk": "many", "sk": str(number)})
        with requests("BatchGetItem") as calls:
            found = TEAMS.get_many([("many", str(number)) for number in range(102)])
        assert {item["sk"] for item in found} == {str(number) for number in range(101)}
        assert [len(call["RequestItems"][TEAMS.name()]["Keys"]) for call in calls] == [100, 2]

    def test_no_keys_send_no_request(self) -> None:
        with requests("BatchGetItem") as calls:
            assert TEAMS.get_many([]) == []
            assert batch_get({TEAMS: [], USAGE: []}) == {TEAMS: [], USAGE: []}
        assert calls == []

    def test_items_of_two_tables_take_one_request(self, ada: None) -> None:
        put({"owner": "team", "day": "2026-01-01"}, USAGE)
        with requests("BatchGetItem") as calls:
            found = batch_get({TEAMS: [("team", "ada")], USAGE: [("team", "2026-01-01")]})
        assert found == {TEAMS: [ADA], USAGE: [{"owner": "team", "day": "2026-01-01"}]}
        assert len(calls) == 1

    def test_two_reads_take_one_request_and_each_gets_its_own_items(self, ada: None) -> None:
        put({"pk": "team", "sk": "bob"})
        put({"owner": "team", "day": "2026-01-01"}, USAGE)

        def reading(keys: dict[Table, list[Key]]) -> Read[Found]:
            return Read(keys, lambda found: found)

        one = reading({TEAMS: [("team", "ada"), ("team", "eve")]})
        other = reading({TEAMS: [("team", "bob"), ("team", "ada")], USAGE: []})
        with requests("BatchGetItem") as calls:
            found, others = read_together(one, other)
        assert found == {TEAMS: [ADA]}
        assert sorted(item["sk"] for item in others[TEAMS]) == ["ada", "bob"]
        assert others[USAGE] == []
        assert [len(call["RequestItems"][TEAMS.name()]["Keys"]) for call in calls] == [3]

    def test_a_batch_of_which_a_part_was_throttled_is_requested_again(self, ada: None) -> None:
        put({"owner": "team", "day": "2026-01-01"}, USAGE)
        keys: dict[Table, list[Key]] = {TEAMS: [("team", "ada")], USAGE: [("team", "2026-01-01")]}
        with answering("dynamodb", "BatchGetItem", left_unprocessed(), times=1):
            assert batch_get(keys)[TEAMS] == [ADA]

    def test_unprocessed_keys_are_requested_again(self, ada: None) -> None:
        with answering("dynamodb", "BatchGetItem", left_unprocessed(), times=1):
            assert TEAMS.get_many([("team", "ada")]) == [ADA]

    def test_keys_that_stay_unprocessed_are_an_error_and_not_a_miss(self) -> None:
        with answering("dynamodb", "BatchGetItem", left_unprocessed()), pytest.raises(TryAgain):
            TEAMS.get_many([("team", "ada")])

    def test_a_batch_that_is_refused_is_requested_again_by_one_policy(
        self, ada: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pauses: list[float] = []
        monkeypatch.setattr("larder.tables.time.sleep", pauses.append)
        monkeypatch.setattr("random.uniform", lambda _, longest: longest)
        busy = {"__type": "x#ProvisionedThroughputExceededException"}
        with refusing("dynamodb", "BatchGetItem", 400, busy) as tries, pytest.raises(TryAgain):
            TEAMS.get_many([("team", "ada")])
        assert (len(tries), pauses) == (5, [0.1, 0.3, 0.9, 2.0])

    def test_a_consistent_read_is_one_transaction_in_the_order_of_the_keys(self, ada: None) -> None:
        conflict = cancelled("TransactionConflict", "None")
        with answering("dynamodb", "TransactGetItems", conflict, times=2) as met:
            assert TEAMS.get_together(("team", "bob"), ("team", "ada")) == [None, ADA]
        assert len(met) == 2
        with answering("dynamodb", "TransactGetItems", conflict), pytest.raises(Contention):
            TEAMS.get_together(("team", "ada"))

    def test_a_query_reads_only_as_many_pages_as_needed(self) -> None:
        for number in range(5):
            put({"pk": "many", "sk": str(number)})
        with requests("Query") as calls:
            items = TEAMS.query(equals(pk="many"), page_size=2, backwards=True)
            assert [next(items)["sk"] for _ in range(3)] == ["4", "3", "2"]
        assert len(calls) == 2
        assert all(call["ConsistentRead"] for call in calls)

    def test_a_query_returns_only_the_requested_attributes(self, ada: None) -> None:
        (item,) = TEAMS.query(equals(pk="team"), only=("role", "joined#at"), consistent=False)
        assert item == {"role": "owner", "joined#at": 5}

    def test_a_page_has_the_key_of_the_next_one(self) -> None:
        for number in range(3):
            put({"pk": "many", "sk": str(number)})
        first, after = TEAMS.page(equals(pk="many"), limit=2)
        assert after == {"pk": "many", "sk": "1"}
        rest, end = TEAMS.page(equals(pk="many"), limit=2, after=after)
        assert [item["sk"] for item in [*first, *rest]] == ["0", "1", "2"]
        assert end is None

    def test_a_query_of_an_index_is_not_consistent(self) -> None:
        put({"pk": "team", "sk": "ada", "user_id": "ada"})
        with requests("Query") as calls:
            (item,) = TEAMS.query(equals(user_id="ada") & begins_with(pk="tea"), index="by_user", page_size=1)
        assert item["sk"] == "ada"
        assert not any("ConsistentRead" in call for call in calls)

    def test_a_scan_reads_every_page(self, ada: None) -> None:
        last = {"pk": {"S": "a"}, "sk": {"S": "a"}}
        cut_off = reply({"Items": [{"pk": {"S": "a"}}], "LastEvaluatedKey": last})
        rest = reply({"Items": [{"pk": {"S": "b"}}]})
        with (
            requests("Scan") as calls,
            answering("dynamodb", "Scan", cut_off, times=1),
            answering("dynamodb", "Scan", rest),
        ):
            assert list(TEAMS.scan(equals(sk="ada"))) == [{"pk": "a"}, {"pk": "b"}]
        assert [call.get("ExclusiveStartKey") for call in calls] == [None, last]

    def test_a_scan_returns_items_that_meet_the_condition(self, ada: None) -> None:
        put({"pk": "other", "sk": "bob"})
        assert list(TEAMS.scan(equals(sk="ada") & ~begins_with(pk="other"))) == [ADA]


MET = [
    exists("role"),
    missing("left"),
    equals(role="owner", sk="ada"),
    not_equals(role="member"),
    not_equals(left=1),
    above(**{"joined#at": 4}),
    at_least(**{"joined#at": 5}),
    below(**{"joined#at": 6}),
    at_most(**{"joined#at": 5}),
    between("joined#at", 5, 5),
    begins_with(role="own"),
    one_of("role", ["member", "owner"]),
    contains("tags", "a"),
    contains(("limits", "a#b"), "read"),
    size_below(tags=3),
    equals(role=Attribute("role#2")),
    below(low=Attribute("joined#at")),
    equals(role="owner") & equals(sk="ada"),
    equals(role="member") | equals(sk="ada"),
    ~equals(role="member"),
]
FAILED = [
    exists("left"),
    missing("role"),
    equals(role="owner", sk="bob"),
    not_equals(role="owner"),
    above(**{"joined#at": 5}),
    at_least(**{"joined#at": 6}),
    below(**{"joined#at": 5}),
    at_most(**{"joined#at": 4}),
    at_most(left=1),
    between("joined#at", 6, 7),
    begins_with(role="mem"),
    one_of("role", ["member"]),
    contains("tags", "c"),
    contains(("limits", "a#b"), "write"),
    contains(("limits", "other"), "read"),
    size_below(tags=2),
    equals(sk=Attribute("role#2")),
    below(**{"joined#at": Attribute("low")}),
    equals(role="owner") & equals(sk="bob"),
    equals(role="member") | equals(sk="bob"),
    ~equals(role="owner"),
    # Conditions that are joined first stay together.
    (equals(sk="ada") | equals(role="owner")) & equals(role="member"),
    ~(equals(sk="ada") & equals(role="owner")),
]


class TestConditions:
    @pytest.mark.parametrize("condition", MET)
    def test_a_condition_that_holds_allows_the_write(self, ada: None, condition: Condition) -> None:
        assert commit(TEAMS.delete("team", "ada", when=condition))
        assert TEAMS.get("team", "ada") is None

    @pytest.mark.parametrize("condition", FAILED)
    def test_a_condition_that_fails_changes_nothing(self, ada: None, condition: Condition) -> None:
        assert not commit(TEAMS.delete("team", "ada", when=condition))
        assert TEAMS.get("team", "ada") == ADA

    def test_a_condition_can_be_reused_for_many_writes(self) -> None:
        unclaimed = missing("pk")
        assert commit(TEAMS.put({"pk": "a", "sk": "a"}, when=unclaimed))
        assert commit(TEAMS.put({"pk": "b", "sk": "b"}, when=unclaimed))
        assert not commit(TEAMS.put({"pk": "a", "sk": "a"}, when=unclaimed))


class TestUpdates:
    def test_attributes_are_set_added_to_and_removed_in_one_update(self, ada: None) -> None:
        update = TEAMS.update(
            "team",
            "ada",
            set={"role": None, "name": "Ada"},
            set_if_missing={"name#2": "A.", "joined#at": 9},
            add={"ci.github.hits": 2, "tags": {"c"}},
            when=equals(role="owner"),
        )
        assert commit(update)
        assert TEAMS.get("team", "ada") == {
            **{name: value for name, value in ADA.items() if name != "role"},
            "name": "Ada",
            "name#2": "A.",
            "ci.github.hits": 2,
            "tags": {"a", "b", "c"},
        }

    def test_an_update_creates_a_missing_item_unless_the_condition_forbids_it(self) -> None:
        assert not commit(TEAMS.update("team", "bob", set={"role": "member"}, when=exists("pk")))
        assert commit(TEAMS.update("team", "bob", add={"count": -2}))
        assert TEAMS.get("team", "bob") == {"pk": "team", "sk": "bob", "count": -2}

    def test_the_new_item_is_returned(self, ada: None) -> None:
        update = TEAMS.update("team", "ada", add={"joined#at": 1}, when=exists("pk"))
        assert commit_returning(update) == (True, {**ADA, "joined#at": 6})

    def test_the_item_that_fails_the_condition_is_returned(self, ada: None) -> None:
        update = TEAMS.update("team", "ada", add={"joined#at": 1}, when=missing("pk"))
        assert commit_returning(update) == (False, ADA)
        gone = TEAMS.update("team", "bob", add={"joined#at": 1}, when=exists("pk"))
        assert commit_returning(gone) == (False, {})

    def test_the_deleted_item_is_returned(self, ada: None) -> None:
        assert commit_returning(TEAMS.delete("team", "ada")) == (True, ADA)
        assert commit_returning(TEAMS.delete("team", "ada")) == (True, {})

    def test_items_are_deleted_while_there_is_time(self) -> None:
        for number in range(3):
            put({"pk": "many", "sk": str(number)})
        time_left = iter([True, True, False])
        items = TEAMS.query(equals(pk="many"))
        assert not TEAMS.delete_each(items, lambda: next(time_left))
        assert [item["sk"] for item in TEAMS.query(equals(pk="many"))] == ["2"]
        assert TEAMS.delete_each(TEAMS.query(equals(pk="many")), lambda: True)
        assert list(TEAMS.query(equals(pk="many"))) == []


class TestTransactions:
    def test_several_writes_are_one_transaction(self, ada: None) -> None:
        with requests("TransactWriteItems") as calls:
            assert commit(
                TEAMS.check("team", "ada", when=equals(role="owner")),
                TEAMS.put({"pk": "team", "sk": "bob"}, when=missing("pk")),
                USAGE.update("team", "2026-01-01", add={"hits": 1}),
            )
        assert len(calls) == 1
        assert TEAMS.get("team", "bob") == {"pk": "team", "sk": "bob"}
        assert USAGE.get("team", "2026-01-01") == {"owner": "team", "day": "2026-01-01", "hits": 1}

    def test_a_failed_condition_undoes_all_writes_and_is_identified(self, ada: None) -> None:
        first = TEAMS.put({"pk": "team", "sk": "bob"})
        second = TEAMS.check("team", "ada", when=equals(role="member"))
        assert failed_writes(first, second) == [second]
        assert not commit(first, second)
        assert TEAMS.get("team", "bob") is None

    def test_a_single_check_is_a_transaction(self, ada: None) -> None:
        assert commit(TEAMS.check("team", "ada", when=exists("pk")))
        assert not commit(TEAMS.check("team", "bob", when=exists("pk")))


def alone() -> list[Write]:
    return [TEAMS.update("team", "ada", add={"count": 1}, when=exists("pk"))]


def together() -> list[Write]:
    return [*alone(), TEAMS.put({"pk": "team", "sk": "bob"})]


def cancelled(*reasons: str) -> Answer:
    listed = [{"Code": reason} for reason in reasons]
    return error("TransactionCanceledException", CancellationReasons=listed)


CONFLICTS = [
    pytest.param(alone, "UpdateItem", error("TransactionConflictException"), id="alone"),
    pytest.param(together, "TransactWriteItems", cancelled("TransactionConflict", "None"), id="together"),
]


@pytest.mark.usefixtures("ada")
class TestContention:
    @pytest.mark.parametrize(("writes", "operation", "conflict"), CONFLICTS)
    def test_a_conflict_with_another_transaction_is_retried(
        self, writes: Callable[[], list[Write]], operation: str, conflict: Answer
    ) -> None:
        with answering("dynamodb", operation, conflict, times=2) as met:
            assert commit(*writes())
        assert len(met) == 2
        assert (TEAMS.get("team", "ada") or {})["count"] == 1

    @pytest.mark.parametrize(("writes", "operation", "conflict"), CONFLICTS)
    def test_a_permanent_conflict_is_a_separate_error(
        self, writes: Callable[[], list[Write]], operation: str, conflict: Answer
    ) -> None:
        """False would mean that a condition failed, such as for a taken address or slug."""
        with answering("dynamodb", operation, conflict) as met, pytest.raises(Contention):
            commit(*writes())
        assert len(met) == 8

    def test_a_failed_condition_is_final_whatever_else_failed(self) -> None:
        for reason in ("TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"):
            both = cancelled(reason, "ConditionalCheckFailed")
            first, second = together()
            with answering("dynamodb", "TransactWriteItems", both) as met:
                assert failed_writes(first, second) == [second]
            assert len(met) == 1

    def test_other_cancellations_are_errors_and_not_false(self) -> None:
        invalid = cancelled("None", "ValidationError")
        with answering("dynamodb", "TransactWriteItems", invalid), pytest.raises(aws.ClientError):
            commit(*together())
        with answering("dynamodb", "UpdateItem", error("AccessDeniedException")), pytest.raises(aws.ClientError):
            commit(*alone())

    @pytest.mark.parametrize("reason", ["ThrottlingError", "ProvisionedThroughputExceeded"])
    def test_a_throttled_table_is_not_a_failed_condition(self, reason: str) -> None:
        busy = cancelled("None", reason)
        with answering("dynamodb", "TransactWriteItems", busy), pytest.raises(TryAgain) as raised:
            commit(*together())
        assert not isinstance(raised.value, Contention)

    def test_a_throttled_transaction_is_tried_three_times(self) -> None:
        body = {"__type": "TransactionCanceledException", "CancellationReasons": [{"Code": "ThrottlingError"}]}
        with refusing("dynamodb", "TransactWriteItems", 400, body) as tries, pytest.raises(TryAgain) as raised:
            commit(*together())
        assert not isinstance(raised.value, Contention)
        assert len(tries) == 3

    def test_a_transaction_in_progress_is_no_conflict(self) -> None:
        under_way = error("TransactionInProgressException")
        failing = answering("dynamodb", "TransactWriteItems", under_way)
        with failing, pytest.raises(TryAgain) as raised:
            commit(*together())
        assert not isinstance(raised.value, Contention)


RENAMED = {"remaining": "left", "left": "remaining", "permissions": "rights"}
KEYS = Table(lambda: settings().api_keys_table, "key_hash", renamed=lambda: RENAMED)
KEY: Item = {"key_hash": "a", "remaining": 2, "left": "hand", "permissions": {"left": ["b"]}}


class TestRenamedAttributes:
    """A deployment can rename the attributes of API keys."""

    @pytest.fixture(autouse=True)
    def _key(self, aws_in_memory: None) -> None:
        put(KEY, KEYS)

    def test_an_item_is_stored_under_the_names_of_the_deployment(self) -> None:
        assert KEYS.get("a") == KEY
        under_its_names = Table(KEYS.name, "key_hash").get("a")
        assert under_its_names == {"key_hash": "a", "left": 2, "remaining": "hand", "rights": {"left": ["b"]}}

    def test_conditions_and_updates_use_larders_names(self) -> None:
        where = equals(remaining=2) & contains(("permissions", "left"), "b")
        update = KEYS.update("a", add={"remaining": -1}, set={"left": None}, when=where)
        changed = {"key_hash": "a", "remaining": 1, "permissions": {"left": ["b"]}}
        assert commit_returning(update) == (True, changed)
        assert commit_returning(update) == (False, changed)
        assert commit_returning(KEYS.delete("a")) == (True, changed)


@contextmanager
def requests(operation: str) -> Iterator[list[dict[str, Any]]]:
    """Yields the arguments of each request of this operation."""
    calls: list[dict[str, Any]] = []

    def note(params: dict[str, Any], **_: object) -> None:
        calls.append(deepcopy(params))

    with hooked(f"provide-client-params.dynamodb.{operation}", note, aws.dynamodb()):
        yield calls


def left_unprocessed() -> Answer:
    keys = [TEAMS.typed_key(("team", "ada"))]
    unprocessed = {TEAMS.name(): {"Keys": keys, "ConsistentRead": True}}
    return reply({"Responses": {TEAMS.name(): []}, "UnprocessedKeys": unprocessed})
