"""Every option of Larder, typed, with its default. The only module that reads the environment.

An option `some_name` is the environment variable `LARDER_SOME_NAME` and, where an operator may want to change it, the
template parameter `SomeName`. docs/configuration.md lists them all.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T", str, int, bool)

_REQUIRED: Any = object()
_CENTURY_SECONDS = 36_500 * 86_400
"""The longest lifetime: a date past the year 9999 could not be stored."""


class SettingsError(Exception):
    """An option is missing or out of its bounds. The message names the variable and the rule."""


def _option(
    default: T,
    help: str,
    *,
    minimum: int | None = None,
    maximum: int | None = None,
    choices: tuple[str, ...] = (),
) -> T:
    bounds = {"min": minimum, "max": maximum, "choices": choices}
    option: T = field(default=default, metadata={"help": help, **bounds})
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
    rate_limits_table: str = _option(_REQUIRED, "Name of the table that counts requests.")
    artifacts_bucket: str = _option(_REQUIRED, "Name of the bucket that holds the artifacts.")
    signing_secret: str = _option(
        _REQUIRED,
        "ARN of the secret, in Secrets Manager, that signs cookies and links. On one machine the secret itself; a "
        "comma and the one before it, which is still accepted, may follow.",
    )
    outbox_table: str = _option(_REQUIRED, "Name of the table of mail that nobody sends on.")
    email_function: str = _option(_REQUIRED, "Name of the function that makes and sends mail.")
    audit_table: str = _option(_REQUIRED, "Name of the table that tells who removed what.")
    removal_function: str = _option(
        _REQUIRED, "Name of the function that removes many artifacts at once."
    )

    retention_days: int = _option(
        30, "Days an artifact is kept after its upload.", minimum=1, maximum=3650
    )
    default_quota_bytes: int = _option(
        0,
        "Bytes that a team (or a user without a team) may store; 0 for no limit.",
        minimum=0,
        maximum=10**18,
    )
    over_quota: str = _option(
        "refuse",
        "What happens to an upload that the quota has no room for: `refuse`, or `evict` what was used longest ago.",
        choices=("refuse", "evict"),
    )
    event_retention_days: int = _option(
        90, "Days the single usage events are kept. Daily figures stay.", minimum=1, maximum=3650
    )
    audit_retention_days: int = _option(
        365, "Days that is kept who removed what.", minimum=1, maximum=3650
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

    default_key_length: int = _option(
        64, "Letters of a new key after its prefix.", minimum=64, maximum=128
    )
    default_key_prefix: str = _option(
        "",
        "What a new key begins with when it is given no prefix; an underscore at its end reads well.",
    )
    minimum_key_prefix_length: int = _option(
        1, "Fewest characters of a prefix.", minimum=1, maximum=32
    )
    maximum_key_prefix_length: int = _option(
        32, "Most characters of a prefix.", minimum=1, maximum=32
    )
    require_key_name: bool = _option(False, "Whether a new key must have a name.")
    minimum_key_name_length: int = _option(
        1, "Fewest characters of a name.", minimum=1, maximum=100
    )
    maximum_key_name_length: int = _option(32, "Most characters of a name.", minimum=1, maximum=100)
    enable_key_metadata: bool = _option(True, "Whether keys may carry metadata.")
    default_key_expires_in_seconds: int = _option(
        0,
        "Lifetime of a new key that is given none; 0 for keys that never expire.",
        minimum=0,
        maximum=_CENTURY_SECONDS,
    )
    disable_custom_key_expiry: bool = _option(
        False, "Whether every key must have the default lifetime."
    )
    minimum_key_expires_in_seconds: int = _option(
        1,
        "Shortest lifetime that a key may be given.",
        minimum=1,
        maximum=_CENTURY_SECONDS,
    )
    maximum_key_expires_in_seconds: int = _option(
        31_536_000,
        "Longest lifetime that a key may be given: a year. A key that is given none never expires.",
        minimum=1,
        maximum=_CENTURY_SECONDS,
    )
    key_rate_limit_enabled: bool = _option(
        False, "Whether a new key has a rate limit when it is given none."
    )
    key_rate_limit_window_ms: int = _option(
        86_400_000,
        "Window of a rate limit that is given none: a day.",
        minimum=1,
        maximum=1_000_000_000_000,
    )
    key_rate_limit_max: int = _option(
        10,
        "Uses in a window of a rate limit that is given none.",
        minimum=1,
        maximum=1_000_000_000_000,
    )
    store_key_start: bool = _option(
        True, "Whether the prefix of a key and its first characters are kept, to recognise it by."
    )
    key_start_length: int = _option(
        6, "How many characters after the prefix are kept.", minimum=1, maximum=16
    )
    disable_key_hashing: bool = _option(
        False,
        "Whether the table holds keys as they are. Discouraged: whoever reads the table can use them.",
    )
    key_generator: str = _option(
        "",
        "`module:function` that makes new keys: called with `length` and `prefix`, returns the whole key.",
    )
    key_validator: str = _option(
        "",
        "`module:function` called with `key` and, if it takes it, `ctx` before the key is looked up; "
        "a key for which it returns nothing true is invalid.",
    )
    default_key_permissions: str = _option(
        '{"artifacts":["read","write"]}',
        "Permissions of a new key that is given none: JSON, or `module:function` called with `user_id` and, "
        "if it takes it, `ctx`.",
    )
    login_token_expires_in_seconds: int = _option(
        7_776_000,
        "Lifetime of the key that `turbo login` gets: 90 days, as far as keys may live so long.",
        minimum=60,
        maximum=31_536_000,
    )
    session_for_api_keys: bool = _option(
        False,
        "Whether a key in a header of a request to `/api/auth` stands for a session of its user.",
    )
    disable_session_for_api_keys: bool = _option(
        False, "Whether it does not, whatever the option above says."
    )
    api_key_headers: str = _option(
        "x-api-key",
        "Headers, separated by commas, in which such a key is looked for, in this order.",
    )
    api_key_getter: str = _option(
        "",
        "`module:function` called with `ctx`, `headers` or both; returns such a key or None. "
        "It takes the place of the headers.",
    )
    api_key_schema: str = _option(
        "{}",
        "Names of attributes in the table of API keys: JSON that maps fields of the record to them.",
    )

    operator_emails: str = _option(
        "",
        "Addresses, separated by commas, whose users are operators once their address is verified.",
    )
    enable_email_and_password: bool = _option(
        True, "Whether people can sign up and in with e-mail and password."
    )
    disable_sign_up: bool = _option(
        False, "Whether nobody can sign up; the operator's command makes users all the same."
    )
    allowed_email_domains: str = _option(
        "", "Domains, separated by commas, whose addresses may sign up; all may when it is empty."
    )
    require_email_verification: bool = _option(
        False, "Whether a user must verify their address before they can sign in."
    )
    enable_change_email: bool = _option(True, "Whether users can change their address.")
    enable_delete_user: bool = _option(True, "Whether users can delete themselves.")
    minimum_password_length: int = _option(
        8, "Fewest characters of a password.", minimum=1, maximum=128
    )
    maximum_password_length: int = _option(
        128, "Most characters of a password.", minimum=8, maximum=1024
    )
    scrypt_cost: int = _option(
        16384,
        "Scrypt's N, a power of two: each doubling doubles time and memory of a sign-in.",
        minimum=1024,
        maximum=262_144,
    )
    password_hash: str = _option(
        "", "`module:function` called with `password`; returns the hash that is stored."
    )
    password_verify: str = _option(
        "",
        "`module:function` called with `hash` and `password`; returns whether they belong together.",
    )
    on_password_reset: str = _option(
        "", "`module:function` called with `data` and `request` after a password was reset."
    )
    revoke_sessions_on_password_reset: bool = _option(
        True, "Whether a reset of the password ends the user's sessions."
    )
    session_expires_in_seconds: int = _option(
        604_800,
        "Lifetime of a session that is not used: seven days.",
        minimum=60,
        maximum=_CENTURY_SECONDS,
    )
    session_update_age_seconds: int = _option(
        86_400,
        "How much of its lifetime a session is used before it begins anew: a day.",
        minimum=0,
        maximum=_CENTURY_SECONDS,
    )
    session_fresh_age_seconds: int = _option(
        86_400,
        "How long after a sign-in a session may list the others and delete its user: a day.",
        minimum=60,
        maximum=_CENTURY_SECONDS,
    )
    reset_token_expires_in_seconds: int = _option(
        3600, "Lifetime of the link that resets a password.", minimum=60, maximum=86_400
    )
    verification_token_expires_in_seconds: int = _option(
        3600, "Lifetime of the link that verifies an address.", minimum=60, maximum=604_800
    )
    disable_team_creation: bool = _option(False, "Whether only operators can make teams over HTTP.")
    max_teams_per_user: int = _option(
        10,
        "Teams that one person may make over HTTP, as long as these exist; 0 for no limit.",
        minimum=0,
        maximum=1000,
    )
    max_open_invitations: int = _option(
        50, "Invitations of one team that may be open at once.", minimum=1, maximum=500
    )
    product_name: str = _option("Larder", "What mail calls this service, and whom it is from.")
    email_sender: str = _option(
        "",
        "Address that mail is sent from through SES. Without one, mail goes to the outbox.",
    )
    outbox_retention_days: int = _option(
        7, "Days that mail is kept in the outbox.", minimum=1, maximum=365
    )
    send_verification_email: str = _option(
        "",
        "`module:function` that delivers a verification link in place of Larder: "
        "called with `{user, url, token}` and the request.",
    )
    send_reset_password: str = _option(
        "",
        "`module:function` that delivers a reset link in place of Larder: "
        "called with `{user, url, token}` and the request.",
    )
    send_team_invitation: str = _option(
        "",
        "`module:function` that delivers the link of an invitation in place of Larder: "
        "called with `{email, url, token, team, role}` and the request.",
    )
    base_url: str = _option(
        "",
        "The origin under which clients reach this deployment, such as `https://cache.example.com`; "
        "empty for the API's own.",
    )
    trusted_origins: str = _option(
        "",
        "Other origins whose pages may call `/api/auth` and be returned to, separated by commas; `*` stands for a part "
        "of a host name without a dot, as in `https://*.example.com`.",
    )
    trusted_proxy_hops: int = _option(
        0,
        "Proxies of the operator's own in front of the API, each adding to X-Forwarded-For; "
        "0 counts who calls the API.",
        minimum=0,
        maximum=10,
    )
    http_rate_limit_enabled: bool = _option(
        True,
        "Whether requests to `/api/auth` are limited by client address and path, and making teams and inviting "
        "people by user.",
    )
    http_rate_limit_window_seconds: int = _option(
        10, "Window of the limit of paths that have no stricter one.", minimum=1, maximum=86_400
    )
    http_rate_limit_max: int = _option(
        100,
        "Requests of one address to one path in that window.",
        minimum=1,
        maximum=1_000_000,
    )

    @property
    def evicts(self) -> bool:
        return self.over_quota == "evict"


def listed(option: str) -> list[str]:
    """What an option holds that names several things, separated by commas."""
    return [entry.strip() for entry in option.split(",") if entry.strip()]


def environment_name(option: str) -> str:
    """The environment variable of an option: `retention_days` is `LARDER_RETENTION_DAYS`."""
    return f"LARDER_{option.upper()}"


def read_settings(environ: Mapping[str, str]) -> Settings:
    """Read every option from `environ`.

    Raises SettingsError for a required option without a value, a number that is none, a number out of bounds, and a
    word that is none of the choices.
    """
    values: dict[str, str | int | bool] = {}
    for option in fields(Settings):
        name = environment_name(option.name)
        text = environ.get(name, "").strip()
        if not text:
            if option.default is _REQUIRED:
                raise SettingsError(f"{name} is not set: {option.metadata['help']}")
            continue
        if option.type is int:
            values[option.name] = _number(name, text, option.metadata)
        else:
            values[option.name] = _truth(name, text) if option.type is bool else text
        choices = option.metadata["choices"]
        if choices and text not in choices:
            raise SettingsError(f"{name} must be {' or '.join(choices)}, not {text!r}")
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


def _truth(name: str, text: str) -> bool:
    if text not in ("true", "false"):
        raise SettingsError(f"{name} must be true or false, not {text!r}")
    return text == "true"


@cache
def settings() -> Settings:
    """The options of this process, read once. `settings.cache_clear()` reads them again."""
    return read_settings(os.environ)


@cache
def s3_endpoint() -> str | None:
    """botocore's own variable for another S3 than Amazon's. Presigned URLs follow it too."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or None


@cache
def region() -> str:
    """The region that Lambda, or botocore's own variable, names."""
    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"


@cache
def metrics_namespace() -> str:
    """Powertools' own variable for where this deployment's metrics are."""
    return os.environ.get("POWERTOOLS_METRICS_NAMESPACE") or "Larder"
