"""The errors among the lines that functions log."""

from __future__ import annotations

import json


def logged_errors(text: str) -> list[str]:
    """Of whole lines of a function's log, those at ERROR or CRITICAL, as somebody reads them."""
    if '"ERROR"' not in text and '"CRITICAL"' not in text:
        return []
    lines = (line for line in text.splitlines() if line.strip())
    return [told for line in lines if (told := _readable(line))]


def _readable(line: str) -> str | None:
    try:
        record = json.loads(line)
        if "message" not in record and "errorType" in record:
            # By AWS's client, on an error that whoever waits for the reply is told anyway.
            return None
        message = str(record["message"])
    except (ValueError, KeyError, TypeError):
        return line
    cause = record.get("exception")
    return f"{message}: {str(cause).strip().splitlines()[-1]}" if cause else message
