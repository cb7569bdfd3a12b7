"""moto's stores, which reply to boto3 in this process. They are created once and copied for every test.

`moto.mock_aws` would take longer than most tests: it creates rules for `requests`, which is not used here, and boto3
would have to create each table and bucket again.
"""

import pickle
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy, deepcopy
from threading import RLock
from typing import Any
from unittest.mock import patch

from moto.core.base_backend import BackendDict
from moto.core.botocore_stubber import BotocoreStubber
from moto.core.model_instances import model_data, reset_model_data
from moto.core.models import DEFAULT_ACCOUNT_ID, botocore_stubber
from moto.core.serialize import AttributePicker, AttributePickerContext, XFormedAttributePicker
from moto.dynamodb.models import DynamoDBBackend, dynamodb_backends
from moto.dynamodb.models.table import Table
from moto.s3.models import FakeKey, s3_backends
from moto.secretsmanager.models import secretsmanager_backends

_MOTO_TRANSACT = DynamoDBBackend.transact_write_items

_names: dict[tuple[Any, str], tuple[str, ...]] = {}
"""The names under which moto looks for a member of a shape. Shapes belong to moto's models, which stay in memory."""


@contextmanager
def answering_boto3() -> Iterator[None]:
    """Keep all boto3 calls in this process. There are no stores at the start and at the end.

    Calls of several threads run one after the other, because moto's stores lose concurrent updates.
    """
    botocore_stubber.enabled = True
    _keep_no_copies()
    lock, answer = RLock(), BotocoreStubber.__call__

    def answer_alone(stubber: BotocoreStubber, *args: Any, **kwargs: Any) -> Any:
        with lock:
            return answer(stubber, *args, **kwargs)

    try:
        with (
            patch.object(BotocoreStubber, "__call__", answer_alone),
            patch.object(XFormedAttributePicker, "__call__", _pick),
            patch.object(DynamoDBBackend, "transact_write_items", _transact),
        ):
            yield
    finally:
        botocore_stubber.enabled = False
        BackendDict.reset()
        reset_model_data()


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


def _transact(backend: DynamoDBBackend, operations: list[dict[str, Any]]) -> None:
    """A transaction that copies each table once, not once per operation."""
    copies: dict[str, Table] = {}

    def copy_once(table: Table, memo: dict[int, Any]) -> Table:
        if table.name not in copies:
            copies[table.name] = copied = copy(table)
            copied.__dict__ = deepcopy(table.__dict__, memo)
        return copies[table.name]

    with patch.object(Table, "__deepcopy__", copy_once, create=True):
        _MOTO_TRANSACT(backend, operations)


class Stores:
    """A copy of the tables, buckets and secrets in one region."""

    def __init__(self, region: str) -> None:
        self._region = region
        # Several times as fast as a deep copy.
        self._kept = pickle.dumps(_stores(region))
        self._bucket_accounts = dict(s3_backends.bucket_accounts)

    def put_back(self) -> None:
        """Replace moto's stores with this copy."""
        for key in FakeKey.instances_tracked:  # type: ignore[attr-defined]
            key.dispose()
        FakeKey.instances_tracked.clear()  # type: ignore[attr-defined]
        kept = pickle.loads(self._kept)
        for held, copied in zip(_stores(self._region), kept, strict=True):
            held.clear()
            held.update(copied)
        # Bucket names are global, and moto stores them separately.
        s3_backends.bucket_accounts.update(self._bucket_accounts)


def _stores(region: str) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    return (
        dynamodb_backends[DEFAULT_ACCOUNT_ID][region].tables,
        s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets,
        secretsmanager_backends[DEFAULT_ACCOUNT_ID][region].secrets,
    )
