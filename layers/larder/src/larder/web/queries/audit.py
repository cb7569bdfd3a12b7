"""Query parameters of the endpoint that lists the audit."""

import re
from dataclasses import dataclass

from larder.audit.models import Action
from larder.web.declared import NEXT, limit, matching, text
from larder.web.errors import InvalidRequest
from larder.web.parameters import BearerToken, check_parameters
from larder.web.powertools.resolver import Request

MAX_ENTRIES = 100
DEFAULT_ENTRIES = 20

ENTRY_ID = re.compile(r"[0-9a-f]{28}")

LIMIT = limit(MAX_ENTRIES, DEFAULT_ENTRIES, "entries")
BEFORE = matching("before", ENTRY_ID, NEXT, "`next` of the previous page.")
ACTION = text(
    "action",
    "Only entries with these actions, separated by commas. A page can then have fewer entries than `limit`, even none, "
    "without being the last: one request reads 1,000 entries at most.",
    {"type": "string", "pattern": "[a-z_]+(?:,[a-z_]+)*"},
)


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
    check_parameters(request, LIMIT, BEFORE, ACTION)
    limit, before, actions = LIMIT(request), BEFORE(request), ACTION(request)
    named = [] if actions is None else actions.split(",")
    if not all(name in list(Action) for name in named):
        raise InvalidRequest("action", "must be names of actions, separated by commas")
    return AuditQuery(limit, before, frozenset(map(Action, named)))
