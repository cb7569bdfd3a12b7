"""Queries of all partitions of an owner's index."""

from collections.abc import Iterator, Mapping, Sequence
from heapq import merge
from itertools import chain, islice
from operator import itemgetter
from typing import Any

from larder.artifacts.repository.table import partitions
from larder.concurrency import map_concurrently
from larder.conditions import Condition, equals
from larder.tables import ARTIFACTS, Item

Query = Mapping[str, Any]
"""The arguments of `Table.query` or `Table.page`."""


def query_each(
    owner: str, where: Condition | None = None, *, only: Sequence[str] = ()
) -> Iterator[Item]:
    """Every item of the index that meets the condition on the sort key, one partition after the other."""
    for partition in partitions(owner):
        of_partition = equals(owner=partition)
        yield from ARTIFACTS.query(
            of_partition if where is None else of_partition & where, only=only
        )


def merged(
    queries: Sequence[Query], *, by: str, backwards: bool = False, page_size: int
) -> Iterator[Item]:
    """The items of queries that are in the order of `by`. The first pages are read at once, others as needed.

    Of equal items, those of the first query come first.
    """
    found = [
        ARTIFACTS.query(**query, backwards=backwards, page_size=page_size) for query in queries
    ]
    if len(found) == 1:
        return found[0]
    return merge(*map_concurrently(_begun, found), key=itemgetter(by), reverse=backwards)


def _begun(items: Iterator[Item]) -> Iterator[Item]:
    return chain(list(islice(items, 1)), items)


def page_of(
    queries: Sequence[Query], *, by: str, backwards: bool = False, limit: int
) -> tuple[list[Item], Item | None]:
    """A page of the merged queries. Also returns its last item, or None if it is the last page.

    That of one query is a page of DynamoDB, with one call.
    """
    if len(queries) == 1:
        return ARTIFACTS.page(**queries[0], backwards=backwards, limit=limit)
    # One and a half times its share: few pages need a second call, and little is read for nothing.
    page_size = limit * 3 // (2 * len(queries)) + 3
    items = merged(queries, by=by, backwards=backwards, page_size=page_size)
    page = list(islice(items, limit + 1))
    return page[:limit], page[limit - 1] if len(page) > limit else None
