"""The usage table: `(owner, "<day>")` is the day's figures, `(owner, "<day>#<batch id>")` one reported batch.

Days are UTC and written YYYY-MM-DD. Batches end by time to live; the figures stay. A day's figures are attributes of
their names, once for all clients and once more, as `ci.<vendor>.<name>`, for each CI vendor; `ci_vendors` is the set of
these vendors, which others may join while it is small. The uploads of a day come from the owner's totals once it is
over (artifacts/repository/totals.py).
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any

from larder import aws
from larder.clock import to_epoch_seconds, to_ms
from larder.concurrency import side_by_side
from larder.errors import TryAgain
from larder.hashing import time_ordered_id
from larder.settings import settings
from larder.usage.models import (
    FIGURES,
    MAX_CI_VENDORS,
    OTHER_CI,
    Day,
    Figures,
    Reporter,
    UsageEvent,
    ci_vendor,
)
from larder.usage.uploads import Uploads


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
    put = {"Put": {"TableName": table, "Item": aws.serialize(batch)}}
    vendor = ci_vendor(reporter.ci)
    # Refused once means that the day tells as many vendors apart as it may.
    for counted_as in dict.fromkeys((vendor, vendor and OTHER_CI)):
        if aws.write_together([put, _roll_up(owner, day, figures, counted_as)]):
            return
    raise TryAgain


def read_days(owner: str, days: Sequence[date]) -> list[Day]:
    """The figures of each day, all zero for one without events. Reads the days' items and none of the batches.

    A hundred days are one batch of reads; several go side by side.
    """
    batches = list(aws.in_batches(days))
    found = side_by_side(partial(_read, owner), batches)
    items = {item["day"]: item for batch in found for item in batch}
    return [_day(items.get(day.isoformat(), {})) for day in days]


def set_uploads(owner: str, day: date, uploads: Uploads) -> None:
    """What was uploaded on a day that is over. Setting it twice changes nothing."""
    aws.dynamodb().update_item(
        TableName=settings().usage_table,
        Key=aws.serialize({"owner": owner, "day": day.isoformat()}),
        UpdateExpression="SET uploads = :count, uploaded_bytes = :bytes",
        ExpressionAttributeValues=aws.serialize(
            {":count": uploads.count, ":bytes": uploads.size_bytes}
        ),
    )


def clear(owner: str, may_go_on: Callable[[], bool]) -> bool:
    """Delete whatever is stored of an owner who is gone; False when there was no time for all of it."""
    table = settings().usage_table
    names = {"#owner": "owner", "#day": "day"}
    items = aws.query(
        table,
        "#owner = :owner",
        {":owner": owner},
        ProjectionExpression="#owner, #day",
        ExpressionAttributeNames=names,
    )
    return aws.delete_each(table, items, may_go_on)


def _read(owner: str, days: Sequence[date]) -> list[aws.Item]:
    table = settings().usage_table
    return aws.batch_get({table: [{"owner": owner, "day": day.isoformat()} for day in days]})[table]


def _day(item: aws.Item) -> Day:
    vendors = sorted(item.get("ci_vendors", ()))
    if any(name.startswith(_part_of(OTHER_CI, "")) for name in item):
        vendors.append(OTHER_CI)
    return Day(
        total=Figures(**{name: item.get(name, 0) for name in FIGURES}),
        by_ci={
            vendor: Figures(**{name: item.get(_part_of(vendor, name), 0) for name in FIGURES})
            for vendor in vendors
        },
        uploads=Uploads(count=item.get("uploads", 0), size_bytes=item.get("uploaded_bytes", 0)),
    )


def _roll_up(owner: str, day: str, figures: Figures, vendor: str | None) -> dict[str, Any]:
    """Add to the day and, on condition that it has room for the vendor, to the vendor's part of it."""
    added: aws.Item = {name: number for name, number in asdict(figures).items() if number}
    values: aws.Item = {}
    condition = {}
    if vendor is not None:
        added |= {_part_of(vendor, name): number for name, number in added.items()}
    if vendor not in (None, OTHER_CI):
        added["ci_vendors"] = {vendor}
        values = {":vendor": vendor, ":most": MAX_CI_VENDORS}
        condition["ConditionExpression"] = (
            "attribute_not_exists(ci_vendors) OR contains(ci_vendors, :vendor)"
            " OR size(ci_vendors) < :most"
        )
    names = dict(enumerate(added))
    values |= {f":{number}": added[name] for number, name in names.items()}
    update = {
        "TableName": settings().usage_table,
        "Key": aws.serialize({"owner": owner, "day": day}),
        "UpdateExpression": "ADD " + ", ".join(f"#{number} :{number}" for number in names),
        "ExpressionAttributeNames": {f"#{number}": name for number, name in names.items()},
        "ExpressionAttributeValues": aws.serialize(values),
        **condition,
    }
    return {"Update": update}


def _part_of(vendor: str, name: str) -> str:
    return f"ci.{vendor}.{name}"
