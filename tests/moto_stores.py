"""moto's stores, which reply to boto3 in this process. They are created once and copied for every test.

`moto.mock_aws` would take longer than most tests: it creates rules for `requests`, which is not used here, and boto3
would have to create each table and bucket again.
"""

import json
import pickle
from base64 import b64encode
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy, deepcopy
from functools import cache
from threading import RLock
from typing import Any
from unittest.mock import patch

from moto.backend_index import backend_url_patterns
from moto.core.base_backend import BackendDict
from moto.core.botocore_stubber import BotocoreStubber
from moto.core.model_instances import model_data, reset_model_data
from moto.core.models import DEFAULT_ACCOUNT_ID, botocore_stubber
from moto.core.responses import ActionContext, ActionResult
from moto.core.serialize import AttributePicker, AttributePickerContext, XFormedAttributePicker
from moto.core.utils import method_names_from_class
from moto.dynamodb.comparisons import ConditionExpressionParser
from moto.dynamodb.models import DynamoDBBackend, dynamodb_backends
from moto.dynamodb.models.dynamo_type import DynamoType, LimitedSizeDict
from moto.dynamodb.models.table import Table
from moto.dynamodb.parsing.ast_nodes import DepthFirstTraverser, Node  # type: ignore[attr-defined]
from moto.dynamodb.parsing.expressions import UpdateExpressionParser  # type: ignore[attr-defined]
from moto.dynamodb.parsing.validators import ActionCountValidator
from moto.dynamodb.responses import DynamoHandler, DynamoResult
from moto.s3.models import FakeKey, s3_backends
from moto.secretsmanager.models import secretsmanager_backends

from tests.moto_sockets import answering_wire

_SERVICES = {"cloudformation", "cloudwatch", "dynamodb", "logs", "s3", "secretsmanager", "ses", "sesv2", "sts"}
_SIMPLE = {"S", "N", "B", "BOOL"}
"""The types of attributes that have no parts."""

_LOCK = RLock()
"""Connections are kept from one test to the next, so all tests of a process share it."""

_MOTO_TRANSACT = DynamoDBBackend.transact_write_items
_MOTO_WORDS = ConditionExpressionParser._lex_condition_expression
_MOTO_SET_ATTRIBUTE = LimitedSizeDict.__setitem__
_MOTO_REPLY = DynamoResult.execute_result
_MOTO_RESULT = DynamoResult.__init__
_MOTO_COUNT_CLAUSES = ActionCountValidator.verify_action_counts

_WITH_ITEMS = ("GetItem", "PutItem", "UpdateItem", "DeleteItem", "GetItems", "Query", "Scan")
"""How the names of operations end whose replies have nothing but items, and numbers of items."""

_LONGEST_KEY = 2048
"""In bytes. Sort keys have half of that."""

_names: dict[tuple[Any, str], tuple[str, ...]] = {}
"""The names under which moto looks for a member of a shape. Shapes belong to moto's models, which stay in memory."""


_conditions: dict[str | None, tuple[Any, ...]] = {}
"""The words of each condition."""


class _Kinds(dict[type, bool]):
    """Whether a type is one of these. moto's nodes are abstract base classes, for which `issubclass` takes long."""

    def __init__(self, *kinds: type) -> None:
        super().__init__()
        self._kinds = kinds

    def __missing__(self, kind: type) -> bool:
        self[kind] = found = issubclass(kind, self._kinds)
        return found


_is_node = _Kinds(Node)

_of_traversers: dict[type, _Kinds] = {}
"""The nodes that each traverser processes."""

_waiting: list["Stores"] = []
"""The stores to put back at the next call. A test often replaces them before it makes one."""


@contextmanager
def answering_boto3() -> Iterator[None]:
    """Keep all calls of both clients in this process. There are no stores at the start and at the end.

    Calls of several threads run one after the other, because moto's stores lose concurrent updates.
    """
    botocore_stubber.enabled = True
    _keep_no_copies()
    answer = BotocoreStubber.__call__

    def answer_alone(stubber: BotocoreStubber, *args: Any, **kwargs: Any) -> Any:
        with _LOCK:
            put_back_waiting()
            return answer(stubber, *args, **kwargs)

    try:
        with (
            answering_wire(_answer_tables),
            patch.object(BotocoreStubber, "__call__", answer_alone),
            patch("moto.core.responses.method_names_from_class", cache(method_names_from_class)),
            patch("moto.backend_index.backend_url_patterns", _url_patterns()),
            patch.object(XFormedAttributePicker, "__call__", _pick),
            patch.object(LimitedSizeDict, "__setitem__", _set_attribute),
            patch.object(DynamoResult, "__init__", ActionResult.__init__),
            patch.object(DynamoResult, "execute_result", _reply),
            patch.object(DynamoDBBackend, "transact_write_items", _transact),
            patch.object(UpdateExpressionParser, "make", cache(UpdateExpressionParser.make)),
            patch.object(Node, "__deepcopy__", _copy_tree, create=True),
            patch.object(DepthFirstTraverser, "traverse", _traverse),
            patch.object(ActionCountValidator, "verify_action_counts", _count_clauses),
            patch.object(ConditionExpressionParser, "_lex_condition_expression", _words),
        ):
            yield
    finally:
        botocore_stubber.enabled = False
        _waiting.clear()
        BackendDict.reset()
        reset_model_data()


def _answer_tables(headers: Any, body: bytes) -> tuple[int, dict[str, str], bytes]:
    """moto's answer to a call of DynamoDB. It would look for the service of the URL first, and parse the body twice."""
    handler = DynamoHandler()
    handler.headers, handler.querystring, handler.uri_match = headers, {}, {}
    handler.params = json.loads(body)
    if any(_is_too_long(key) for key in _keys(handler.params)):
        refusal = {"__type": "ValidationException", "message": "a key is too long"}
        content = json.dumps(refusal).encode()
        return 400, {"content-length": str(len(content))}, content
    handler.region = headers["authorization"].split("/")[2]
    handler.current_account = DEFAULT_ACCOUNT_ID
    handler.access_key = ""
    handler.response_headers = {}
    with _LOCK:
        put_back_waiting()
        status, lines, text = handler.call_action()
    content = text.encode() if isinstance(text, str) else text
    return int(status), {**lines, "content-length": str(len(content))}, content


def _keys(asked: Any) -> Iterator[dict[str, dict[str, str]]]:
    """The keys in the parameters of a call."""
    if isinstance(asked, list):
        for one in asked:
            yield from _keys(one)
    elif isinstance(asked, dict):
        yield from [asked["Key"]] if "Key" in asked else asked.get("Keys", [])
        for name, value in asked.items():
            if name not in ("Key", "Keys", "Item", "ExpressionAttributeValues"):
                yield from _keys(value)


def _is_too_long(key: dict[str, dict[str, str]]) -> bool:
    """Whether DynamoDB refuses a key that moto accepts."""
    return any(len(value.get("S", "").encode()) > _LONGEST_KEY for value in key.values())


def _keep_no_copies() -> None:
    """Make moto store the items of its tables only once.

    It keeps every model until its stores end, for a page that shows them. A transaction copies its tables, to restore
    them if it fails, so a test of many transactions would keep a copy for each. (S3's models are still kept, because
    moto needs them to close their files.)
    """
    for model in model_data["dynamodb"].values():
        model.instances_tracked = deque(maxlen=0)  # type: ignore[attr-defined]


def _pick(picker: XFormedAttributePicker, context: AttributePickerContext) -> Any:
    """moto's value for a member of a reply. The candidate names are computed once, not for each item of each reply."""
    if type(context.obj) is not dict or picker.response_transformers:
        return AttributePicker.__call__(picker, context)
    place = (context.shape, context.key)
    if place not in _names:
        _names[place] = tuple(picker.get_possible_keys(context))
    return next((context.obj[name] for name in _names[place] if name in context.obj), None)


def _url_patterns() -> list[tuple[str, Any]]:
    """The patterns of the services in use. moto tries each of 200 for every request."""
    return [(service, pattern) for service, pattern in backend_url_patterns if service in _SERVICES]


def _set_attribute(attributes: LimitedSizeDict, name: str, value: DynamoType) -> None:
    """Set an attribute of an item. moto measures the whole item for each, which only long values can make too large."""
    simple = type(value) is DynamoType and value.type in _SIMPLE
    if simple and len(str(value.value)) < 1000:
        dict.__setitem__(attributes, name, value)
    else:
        _MOTO_SET_ATTRIBUTE(attributes, name, value)


def _reply(result: DynamoResult, context: ActionContext) -> tuple[int, dict[str, str], str]:
    """The reply with items. moto builds each attribute twice more, and looks up its shape, before it writes JSON."""
    if not str(context.operation_model.name).endswith(_WITH_ITEMS):
        _MOTO_RESULT(result, result.result)
        return _MOTO_REPLY(result, context)  # type: ignore[return-value]
    given: Any = result.result
    known = context.operation_model.output_shape.members  # type: ignore[union-attr]
    members = {name: given[name] for name in known if given.get(name) is not None}
    body = json.dumps(members, default=_attribute)
    return 200, {"Content-Type": "application/x-amz-json-1.0"}, body


def _attribute(value: object) -> object:
    """An attribute of an item for json. Bytes from a request are still in base64."""
    if isinstance(value, DynamoType):
        return {value.type: value.value}
    if isinstance(value, bytes):
        return b64encode(value).decode()
    raise TypeError(f"no reply has a {type(value).__name__}")


def _count_clauses(validator: ActionCountValidator, update: Any) -> Any:
    """Refuse two clauses of a kind. The whole update has those of its parts, which moto would count again."""
    return update if update.parent else _MOTO_COUNT_CLAUSES(validator, update)


def _words(parser: ConditionExpressionParser) -> deque[Any]:
    """The words of a condition, which moto compiles nine patterns for at each word."""
    if parser.condition_expression not in _conditions:
        _conditions[parser.condition_expression] = tuple(_MOTO_WORDS(parser))
    return deque(_conditions[parser.condition_expression])


def _copy_tree(node: Node, memo: dict[int, Any]) -> Node:
    """A copy of a parsed update, which moto makes before it fills in values. Only its nodes change."""
    copied = copy(node)
    if node.children is not None:
        copied.children = [_copy_tree(child, memo) if _is_node[type(child)] else child for child in node.children]
        for child in copied.children:
            if _is_node[type(child)]:
                child.parent = copied
    return copied


def _traverse(traverser: DepthFirstTraverser, node: Node) -> Node:
    """Process the nodes of a tree from the bottom up. moto asks the traverser at each node which ones to process."""
    prepare = type(traverser).pre_processing_of_child
    prepares = prepare is not DepthFirstTraverser.pre_processing_of_child
    is_processed = _of_traversers.setdefault(type(traverser), _Kinds(*traverser.nodes_to_be_processed()))

    def visit(node: Any, position: int) -> Any:
        parent = node.parent
        for index, child in enumerate(node.children or ()):
            if prepares:
                prepare(traverser, node, index)
            if _is_node[type(child)]:
                visit(child, index)
        if is_processed[type(node)]:
            node = traverser.process(node)
            node.parent = parent
            if parent:
                parent.children[position] = node
        return node

    return visit(node, -1)


def _transact(backend: DynamoDBBackend, operations: list[dict[str, Any]]) -> None:
    """A transaction that copies only its items, to restore them after a failure."""
    copies: dict[str, Table] = {}

    def copy_once(table: Table, memo: dict[int, Any]) -> Table:
        if table.name not in copies:
            copies[table.name] = copied = copy(table)
            copied.items = _items_before(table, operations)
        return copies[table.name]

    with patch.object(Table, "__deepcopy__", copy_once, create=True):
        _MOTO_TRANSACT(backend, operations)


def _items_before(table: Table, operations: list[dict[str, Any]]) -> defaultdict[Any, Any]:
    items = table.items.copy()
    for operation in operations:
        for request in operation.values():
            if request["TableName"] == table.name:
                key = request.get("Key") or request["Item"]
                partition = DynamoType(key[table.hash_key_attr])
                if partition not in items:
                    continue
                if table.range_key_attr is None:
                    items[partition] = deepcopy(items[partition])
                    continue
                items[partition] = held = items[partition].copy()
                place = DynamoType(key[table.range_key_attr])
                if place in held:
                    held[place] = deepcopy(held[place])
    return items


class Stores:
    """A copy of the tables, buckets and secrets in one region."""

    def __init__(self, region: str) -> None:
        put_back_waiting()
        self._region = region
        # Several times as fast as a deep copy.
        self._kept = pickle.dumps(_stores(region))
        self._bucket_accounts = dict(s3_backends.bucket_accounts)

    def put_back(self) -> None:
        """Replace moto's stores with this copy, at the next call."""
        _waiting[:] = [self]

    def put_back_now(self) -> None:
        for key in FakeKey.instances_tracked:  # type: ignore[attr-defined]
            key.dispose()
        FakeKey.instances_tracked.clear()  # type: ignore[attr-defined]
        kept = pickle.loads(self._kept)
        for held, copied in zip(_stores(self._region), kept, strict=True):
            held.clear()
            held.update(copied)
        # Bucket names are global, and moto stores them separately.
        s3_backends.bucket_accounts.update(self._bucket_accounts)


def put_back_waiting() -> None:
    """Put back the stores now that wait for the next call."""
    while _waiting:
        _waiting.pop().put_back_now()


def _stores(region: str) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    return (
        dynamodb_backends[DEFAULT_ACCOUNT_ID][region].tables,
        s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets,
        secretsmanager_backends[DEFAULT_ACCOUNT_ID][region].secrets,
    )
