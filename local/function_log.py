"""Find errors in the functions' logs."""

from __future__ import annotations

import json


def logged_errors(text: str) -> list[str]:
    """The lines at ERROR or CRITICAL in complete lines of a function's log, in readable form."""
    if '"ERROR"' not in text and '"CRITICAL"' not in text:
        return []
    lines = (line for line in text.splitlines() if line.strip())
    return [readable for line in lines if (readable := _readable(line))]


def _readable(line: str) -> str | None:
    try:
        record = json.loads(line)
        if "message" not in record and "errorType" in record:
            # AWS's runtime client prints this for an error that the caller also receives.
            return None
        message = str(record["message"])
    except (ValueError, KeyError, TypeError):
        return line
    cause = record.get("exception")
    return f"{message}: {str(cause).strip().splitlines()[-1]}" if cause else message
