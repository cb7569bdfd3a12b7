"""The usage table: `(owner, "<day>")` is the day's figures, `(owner, "<day>#<batch id>")` one reported batch.

Days are UTC and written YYYY-MM-DD. Batches end by time to live; the figures stay.
"""

from collections.abc import Sequence
from dataclasses import asdict, fields
from datetime import date, datetime, timedelta

from larder import aws
from larder.clock import to_epoch_seconds, to_ms
from larder.concurrency import wait_before_retry
from larder.errors import TryAgain
from larder.hashing import time_ordered_id
from larder.settings import settings
from larder.usage.models import Figures, Reporter, UsageEvent

_ATTEMPTS = 8


def add_batch(
    owner: str, events: Sequence[UsageEvent], figures: Figures, reporter: Reporter, *, now: datetime
) -> None:
    """Store the batch and add its figures to the day in one transaction, whatever the number of events.

    Builds that end in the same moment meet at the day's item; the loser tries again. Raises TryAgain when it always
    loses; nothing is counted then.
    """
    table = settings().usage_table
    day = now.date().isoformat()
    batch = {
        "owner": owner,
        "day": f"{day}#{time_ordered_id(now)}",
        "received_at": to_ms(now),
        "expires_at": to_epoch_seconds(now + timedelta(days=settings().event_retention_days)),
        "key_id": reporter.key_id,
        "ci": reporter.ci,
        "interactive": reporter.interactive,
        "events": [
            {
                "session_id": event.session_id,
                "source": event.source,
                "event": event.event,
                "hash": event.hash,
                "duration_ms": round(event.duration_ms),
            }
            for event in events
        ],
    }
    sums = asdict(figures)
    for attempt in range(_ATTEMPTS):
        try:
            aws.dynamodb().transact_write_items(
                TransactItems=[
                    {
                        "Put": {
                            "TableName": table,
                            "Item": aws.serialize(batch),
                        }
                    },
                    {
                        "Update": {
                            "TableName": table,
                            "Key": aws.serialize({"owner": owner, "day": day}),
                            "UpdateExpression": "ADD " + ", ".join(f"#{n} :{n}" for n in sums),
                            "ExpressionAttributeNames": {f"#{n}": n for n in sums},
                            "ExpressionAttributeValues": aws.serialize(
                                {f":{name}": number for name, number in sums.items()}
                            ),
                        }
                    },
                ]
            )
        except aws.ClientError as error:
            if not aws.is_conflict(error):
                raise
            wait_before_retry(attempt)
        else:
            return
    raise TryAgain


def read_day(owner: str, day: date) -> Figures:
    """The figures of one day; all zero for a day without events."""
    item = aws.get_item(settings().usage_table, {"owner": owner, "day": day.isoformat()}) or {}
    return Figures(**{field.name: item.get(field.name, 0) for field in fields(Figures)})
