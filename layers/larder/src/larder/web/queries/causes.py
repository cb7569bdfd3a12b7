"""The query parameter of requests that compare runs."""

import re

from larder.web.declared import matching
from larder.web.parameters import BearerToken, check_parameters
from larder.web.powertools.resolver import Request

AGAINST = matching(
    "against",
    re.compile(r"[A-Za-z0-9]{1,64}"),
    "must be main, last, ci or the id of a run",
    "The run to compare with: `main`, `last` (your last one), `ci`, or the id of a run. Without it, Larder chooses one "
    "for a report, and shows the stored causes of a run.",
)


def asked_baseline(_token: BearerToken, request: Request) -> str | None:
    """`?against=`. Raises InvalidRequest."""
    check_parameters(request, AGAINST)
    return AGAINST(request)
