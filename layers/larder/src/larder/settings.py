"""Every option of Larder, typed, with its default. The only module that reads the environment.

An option `some_name` is the environment variable `LARDER_SOME_NAME` and, where an operator may want to change it, the
template parameter `SomeName`. docs/configuration.md lists them all.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T", str, int)

_REQUIRED: Any = object()


class SettingsError(Exception):
    """An option is missing or out of its bounds. The message names the variable and the rule."""


def _option(default: T, help: str, *, minimum: int | None = None, maximum: int | None = None) -> T:
    option: T = field(default=default, metadata={"help": help, "min": minimum, "max": maximum})
    return option


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The options of one deployment. Sizes are in bytes, times in the unit that the name ends with."""

    identity_table: str = _option(_REQUIRED, "Name of the table of users.")
    api_keys_table: str = _option(_REQUIRED, "Name of the table of API keys.")
    teams_table: str = _option(_REQUIRED, "Name of the table of teams, slugs and members.")
    artifacts_table: str = _option(
        _REQUIRED, "Name of the table that indexes the stored artifacts."
    )
    usage_table: str = _option(_REQUIRED, "Name of the table of usage events and daily figures.")
    artifacts_bucket: str = _option(_REQUIRED, "Name of the bucket that holds the artifacts.")

    retention_days: int = _option(
        30, "Days an artifact is kept after its upload.", minimum=1, maximum=3650
    )
    default_quota_bytes: int = _option(
        0, "Bytes that a team (or a user without a team) may store; 0 for no limit.", minimum=0
    )
    event_retention_days: int = _option(
        90, "Days the single usage events are kept. Daily figures stay.", minimum=1, maximum=3650
    )
    upload_url_seconds: int = _option(
        600, "Seconds in which an upload by a presigned URL must begin.", minimum=30, maximum=3600
    )
    download_url_seconds: int = _option(
        600, "Seconds in which a download by a presigned URL must begin.", minimum=30, maximum=3600
    )
    inline_download_bytes: int = _option(
        262_144,
        "Artifacts up to this size are answered by the function itself, larger ones by a redirect to S3.",
        minimum=0,
        maximum=4_700_000,
    )
    inline_limit_bytes: int = _option(
        4_700_000,
        "Largest artifact that can travel through a function: Lambda's 6 MB after base64. "
        "Tagged artifacts up to it are answered by the function, because S3 would lose the tag.",
        minimum=0,
        maximum=4_700_000,
    )
    max_upload_bytes: int = _option(
        5 * 1024**3,
        "Largest artifact taken: a single PUT to S3 ends at 5 GiB.",
        minimum=1,
        maximum=5 * 1024**3,
    )
    max_events: int = _option(500, "Usage events taken in one request.", minimum=1, maximum=1000)
    max_query_hashes: int = _option(500, "Hashes that one query may name.", minimum=1, maximum=1000)


def environment_name(option: str) -> str:
    """The environment variable of an option: `retention_days` is `LARDER_RETENTION_DAYS`."""
    return f"LARDER_{option.upper()}"


def read_settings(environ: Mapping[str, str]) -> Settings:
    """Read every option from `environ`.

    Raises SettingsError for a required option without a value, a number that is none, and a number out of bounds.
    """
    values: dict[str, str | int] = {}
    for option in fields(Settings):
        name = environment_name(option.name)
        text = environ.get(name, "").strip()
        if not text:
            if option.default is _REQUIRED:
                raise SettingsError(f"{name} is not set: {option.metadata['help']}")
            continue
        values[option.name] = _number(name, text, option.metadata) if option.type is int else text
    return Settings(**values)  # type: ignore[arg-type]  # each value has its field's type by now


def _number(name: str, text: str, bounds: Mapping[str, Any]) -> int:
    try:
        number = int(text)
    except ValueError:
        raise SettingsError(f"{name} must be a whole number, not {text!r}") from None
    if bounds["min"] is not None and number < bounds["min"]:
        raise SettingsError(f"{name} must be at least {bounds['min']}, not {number}")
    if bounds["max"] is not None and number > bounds["max"]:
        raise SettingsError(f"{name} must be at most {bounds['max']}, not {number}")
    return number


@cache
def settings() -> Settings:
    """The options of this process, read once. `settings.cache_clear()` reads them again."""
    return read_settings(os.environ)


@cache
def s3_endpoint() -> str | None:
    """boto3's own variable for another S3 than Amazon's. Presigned URLs follow it too."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or None


@cache
def region() -> str:
    """The region that Lambda, or boto3's own variable, names."""
    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
