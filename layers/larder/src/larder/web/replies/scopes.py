"""The own scopes of a team in replies."""

from typing import TypedDict

from larder.artifacts.records import OwnScope, ScopeKind
from larder.clock import Milliseconds
from larder.records import shaped
from larder.trust.scopes import ScopePage


class ScopeJson(TypedDict):
    """An own scope. `name` is that of the key or job, or the email address of the user.

    `userId` is the user, or the rule of a job. `size` and `artifacts` are of the time `countedAt`; they are null until
    the first daily count.
    """

    id: str
    kind: ScopeKind
    name: str | None
    userId: str | None
    lastUploadAt: Milliseconds | None
    size: int | None
    artifacts: int | None
    countedAt: Milliseconds | None


class ScopesPageJson(TypedDict):
    """Send `next` as `cursor` to get the next page. It is null on the last page."""

    count: int
    next: str | None


class ScopesJson(TypedDict):
    """`size` is what all own scopes hold together now, and `maxSize` what they may hold, null for no limit."""

    scopes: list[ScopeJson]
    size: int
    maxSize: int | None
    pagination: ScopesPageJson


def scopes_json(page: ScopePage) -> ScopesJson:
    return {
        "scopes": [_scope_json(scope) for scope in page.scopes],
        "size": page.scoped_bytes,
        "maxSize": page.most_scoped_bytes,
        "pagination": {"count": len(page.scopes), "next": page.following},
    }


def _scope_json(scope: OwnScope) -> ScopeJson:
    return shaped(ScopeJson, scope, size=scope.size_bytes)
