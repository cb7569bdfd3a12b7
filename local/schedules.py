"""Runs the functions that have a schedule, as EventBridge does."""

from __future__ import annotations

import asyncio
import json
import uuid
from datetime import UTC, datetime
from typing import Any

from local.function_pool import FunctionFailed, FunctionPool
from local.request_log import RequestLog
from local.template import ACCOUNT_ID, REGION, Schedule


async def run_schedules(
    schedules: list[Schedule], functions: FunctionPool, log: RequestLog
) -> None:
    """Run them until cancelled. Each runs first after its period has passed."""
    async with asyncio.TaskGroup() as group:
        for schedule in schedules:
            group.create_task(_run(schedule, functions, log))


async def _run(schedule: Schedule, functions: FunctionPool, log: RequestLog) -> None:
    while True:
        await asyncio.sleep(schedule.every.total_seconds())
        event = json.dumps(scheduled_event(schedule.name, datetime.now(tz=UTC))).encode("ascii")
        try:
            await functions.invoke(schedule.function, event, str(uuid.uuid4()))
        except FunctionFailed as error:
            log.note(f"{schedule.function.logical_id} failed on its schedule: {error}")


def scheduled_event(name: str, now: datetime) -> dict[str, Any]:
    return {
        "version": "0",
        "id": str(uuid.uuid4()),
        "detail-type": "Scheduled Event",
        "source": "aws.events",
        "account": ACCOUNT_ID,
        "time": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "region": REGION,
        "resources": [f"arn:aws:events:{REGION}:{ACCOUNT_ID}:rule/{name}"],
        "detail": {},
    }
