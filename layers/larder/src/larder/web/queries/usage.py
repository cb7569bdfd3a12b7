"""Query parameters for a range of days."""

import re
from datetime import date

from larder import clock
from larder.usage.models import Period, period_until
from larder.web.declared import text
from larder.web.errors import InvalidRequest
from larder.web.parameters import BearerToken, check_parameters
from larder.web.powertools.resolver import Request

MAX_DAYS = 366
MAX_DAYS_BY_KEY = 31
DEFAULT_DAYS = 30

_DAY = re.compile(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}")
_DATE = {"type": "string", "format": "date"}

FROM = text("from", "The first day, in UTC.", _DATE)
TO = text("to", "The last day, in UTC. Today by default.", _DATE)
WHAT = text(
    "what", "The dimension to group by.", {"type": "string", "enum": ["key"]}, required=True
)


def period_query(_token: BearerToken, request: Request) -> Period:
    """`from` and `to`, both included. The default is the thirty days up to today. Raises InvalidRequest."""
    check_parameters(request, FROM, TO)
    return parse_period(FROM(request), TO(request))


def period_by_key_query(_token: BearerToken, request: Request) -> Period:
    """The same, with the dimension to group by, and for MAX_DAYS_BY_KEY. Raises InvalidRequest."""
    check_parameters(request, WHAT, FROM, TO)
    if WHAT(request) != "key":
        raise InvalidRequest("what", "must be key")
    return parse_period(FROM(request), TO(request), longest=MAX_DAYS_BY_KEY)


def parse_period(first: str | None, last: str | None, *, longest: int = MAX_DAYS) -> Period:
    """Raises InvalidRequest."""
    until = clock.now().date() if last is None else _day("to", last)
    if first is None:
        return period_until(until, DEFAULT_DAYS)
    period = Period(first=_day("from", first), last=until)
    if period.first > period.last:
        raise InvalidRequest("from", "must not be after `to`, or today without one")
    if len(period.days) > longest:
        raise InvalidRequest("from", f"must be at most {longest} days before `to`, both included")
    return period


def _day(name: str, text: str) -> date:
    try:
        if _DAY.fullmatch(text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise InvalidRequest(name, "must be a day of this century, written YYYY-MM-DD")
