"""Query parameters of the endpoint that lists the audit."""

import re
from dataclasses import dataclass
from typing import Annotated

from larder.audit.models import Action
from larder.web.errors import InvalidRequest
from larder.web.parameters import BearerToken, check_parameters
from larder.web.powertools.resolver import Depends, Request

MAX_ENTRIES = 100
DEFAULT_ENTRIES = 20

ENTRY_ID = re.compile(r"[0-9a-f]{28}")
_NUMBER = re.compile(r"[0-9]{1,3}")


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """At most `limit` entries before the entry `before`, which is None for the first page.

    `actions` selects entries. It is empty for all.
    """

    limit: int
    before: str | None
    actions: frozenset[Action]


def audit_query(_token: BearerToken, request: Request) -> AuditQuery:
    """Raises InvalidRequest."""
    check_parameters(request, "limit", "before", "action")
    query = request.query_parameters or {}
    limit = query.get("limit", str(DEFAULT_ENTRIES))
    if not _NUMBER.fullmatch(limit) or not 1 <= int(limit) <= MAX_ENTRIES:
        raise InvalidRequest("limit", f"must be a whole number from 1 to {MAX_ENTRIES}")
    before = query.get("before")
    if before is not None and not ENTRY_ID.fullmatch(before):
        raise InvalidRequest("before", "must be the `next` of the previous page")
    named = query["action"].split(",") if "action" in query else []
    if not all(name in list(Action) for name in named):
        raise InvalidRequest("action", "must be names of actions, separated by commas")
    return AuditQuery(int(limit), before, frozenset(map(Action, named)))


AuditAsked = Annotated[AuditQuery, Depends(audit_query)]
