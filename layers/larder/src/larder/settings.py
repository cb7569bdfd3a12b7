"""Every option of Larder, typed, with its default. The only module that reads the environment.

An option `some_name` is the environment variable `LARDER_SOME_NAME`. Unless it names a resource of the stack, it is
also the template parameter `SomeName`. A function of a stack gets the options of its set: each text as a variable, and
all others in `LARDER_OPTIONS`. `make generate` writes the parameters of template.yaml and the tables of
docs/configuration.md from this file. The sets are in the template.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

T = TypeVar("T", str, int, bool)

PACKED = "LARDER_OPTIONS"
"""The variable that holds several options as `some_name=value`, separated by spaces."""

_REQUIRED: Any = object()
_CENTURY_SECONDS = 36_500 * 86_400
"""The longest lifetime. A date after the year 9999 could not be stored."""

MODULE_PATTERN = "^([A-Za-z0-9_]+([.][A-Za-z0-9_]+)*)?$"
"""The form of an option that names an integrator's module."""


class SettingsError(Exception):
    """An option is missing or out of its bounds. The message names the variable and the rule."""


def _resource(help: str) -> str:
    """The name of a resource of the stack. The template passes it to the functions."""
    resource: str = _option(_REQUIRED, help, group=None)
    return resource


def _option(
    default: T,
    help: str,
    *,
    group: str | None,
    minimum: int | None = None,
    maximum: int | None = None,
    longest: int | None = None,
    choices: tuple[T, ...] = (),
    pattern: str | None = None,
    rule: str | None = None,
) -> T:
    """One option. `help` says what the value means, its unit and its special values: every description shows it.

    `group` names the table of docs/configuration.md that lists it; a resource of the stack has none. `pattern` is for
    the template alone: the code that reads such an option checks it with a message of its own. `rule` completes the
    message "LARDER_SOME_NAME ..." of a refused value. `longest` bounds the characters of a text, so that the variables
    of each function fit into Lambda's 4 KB.
    """
    option: T = field(
        default=default,
        metadata={
            "help": help,
            "group": group,
            "min": minimum,
            "max": maximum,
            "longest": longest,
            "choices": choices,
            "pattern": pattern,
            "rule": rule,
        },
    )
    return option


def _json(*, quotes: int) -> str:
    """The form of a JSON object in ASCII. Quotes are limited, because the JSON of Lambda writes each with two bytes."""
    return rf'^(?=[{{][ -~]*$)([^"\\]*"){{0,{quotes}}}[^"\\]*$'


def _international(pattern: str, *, most: int) -> str:
    """`pattern` for ASCII, or for at most `most` characters of which some are not: JSON writes those with six bytes."""
    return rf"^(?=[ -~]*$|[ -\uFFFF]{{0,{most}}}$){pattern}$"


def _cidrs() -> str:
    """The form of a list of networks in CIDR notation. Only bits after a network's prefix are not checked."""
    octet = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
    group, most_groups = "[0-9A-Fa-f]{1,4}", r"(?!(:{0,2}[0-9A-Fa-f]{1,4}\b){8})"
    some = f"({group}(:{group}){{0,6}})?"
    v4 = rf"{octet}(\.{octet}){{3}}/(3[0-2]|[12]?[0-9])"
    v6 = f"({group}(:{group}){{7}}|{most_groups}{some}::{some})/(12[0-8]|1[01][0-9]|[1-9]?[0-9])"
    return f"^(({v4}|{v6})(,(?!$)|$))*$"


# Only read_settings makes one. Python would take 5 ms at each start to make methods for so many fields.
@dataclass(frozen=True, slots=True, init=False, repr=False, eq=False)
class Settings:
    """The options of one deployment. Sizes are in bytes, times in the unit that the name ends with.

    An option whose variable is not set has no value: reading it raises SettingsError.
    """

    identity_table: str = _resource("Name of the table of users and sessions.")
    api_keys_table: str = _resource("Name of the table of API keys.")
    teams_table: str = _resource("Name of the table of teams, slugs and members.")
    artifacts_table: str = _resource("Name of the table that indexes the stored artifacts.")
    usage_table: str = _resource("Name of the table of usage events and daily figures.")
    rate_limits_table: str = _resource("Name of the table that counts requests.")
    artifacts_bucket: str = _resource("Name of the bucket that holds the artifacts.")
    signing_secret: str = _resource(
        "ARN of the secret, in Secrets Manager, that signs cookies and links. On one machine it is the secret itself; "
        "a comma and the previous secret, which is still accepted, may follow."
    )
    outbox_table: str = _resource("Name of the table that keeps mail when there is no sender.")
    email_function: str = _resource("Name of the function that makes and sends mail.")
    audit_table: str = _resource(
        "Name of the table of audit entries: who got access, and who deleted or replaced what."
    )
    removal_function: str = _resource("Name of the function that deletes many artifacts at once.")
    commit_function: str = _resource("Name of the function that publishes what is in the bucket.")
    edge_url: str = _option(
        "",
        "URL of the [edge](edge.md), without a slash at the end. Empty if the stack has none.",
        group=None,
    )

    retention_days: int = _option(
        30,
        "Days an artifact is kept after its last use, also what is stored already.",
        group="cache",
        minimum=1,
        maximum=3650,
    )
    scoped_retention_days: int = _option(
        7,
        "Days an artifact in an [own scope](protection.md#scopes) is kept, if less than `RetentionDays`.",
        group="cache",
        minimum=1,
        maximum=3650,
    )
    default_quota_bytes: int = _option(
        10**11,
        "Bytes a team may store (100 GB), half of it for each further team of its creator. 0 means no limit. "
        "`larder teams set --quota` sets another for one team.",
        group="cache",
        minimum=0,
        maximum=10**18,
    )
    personal_quota_bytes: int = _option(
        5 * 10**9,
        "Bytes a user may store without a team (5 GB). 0 means no limit. `larder users set --quota` sets another for "
        "one user.",
        group="cache",
        minimum=0,
        maximum=10**18,
    )
    unverified_quota_bytes: int = _option(
        10**9,
        "Bytes a user may store without a team until their email address is proven (1 GB), if less than "
        "`PersonalQuotaBytes`. 0 means nothing. A user's own quota replaces it.",
        group="cache",
        minimum=0,
        maximum=10**18,
    )
    scoped_share: int = _option(
        50,
        "Percent of a team's quota that all own scopes may take together.",
        group="cache",
        minimum=1,
        maximum=100,
    )
    max_stored_bytes: int = _option(
        10**12,
        "Bytes all teams and users may store together (1 TB). 0 means no limit. The last tenth is for those who store"
        " less than a thousandth of it.",
        group="cache",
        minimum=0,
        maximum=10**18,
    )
    over_quota: str = _option(
        "evict",
        "An upload over the quota: `evict` deletes the least recently used artifacts, `refuse` refuses the upload.",
        group="cache",
        choices=("evict", "refuse"),
    )
    event_retention_days: int = _option(
        90,
        "Days single usage events are kept. Daily figures stay.",
        group="cache",
        minimum=1,
        maximum=3650,
    )
    run_retention_days: int = _option(
        30,
        "Days reported [runs](usage.md#runs) are kept.",
        group="cache",
        minimum=1,
        maximum=3650,
    )
    audit_retention_days: int = _option(
        365, "Days audit entries are kept.", group="cache", minimum=1, maximum=3650
    )
    upload_url_seconds: int = _option(
        600,
        "Seconds in which a direct upload must begin: the validity of its presigned URL.",
        group="cache",
        minimum=30,
        maximum=3600,
    )
    download_url_seconds: int = _option(
        600,
        "Seconds in which a redirected download must begin: the validity of its presigned URL.",
        group="cache",
        minimum=30,
        maximum=3600,
    )
    inline_download_bytes: int = _option(
        262_144,
        "The largest unsigned artifact, in bytes, that a function returns itself. Larger ones redirect to S3: a round "
        "trip more, and less cost.",
        group="cache",
        minimum=0,
        maximum=4_700_000,
    )
    inline_limit_bytes: int = _option(
        4_700_000,
        "The largest signed artifact, in bytes, that a function returns itself. Larger ones redirect to S3, which may"
        " lose the signature. Lambda allows about 4.7 MB.",
        group="cache",
        minimum=0,
        maximum=4_700_000,
    )
    edge_downloads: str = _option(
        "all",
        "The redirects that the [edge](edge.md#cost) carries: `all`, or those of `tagged` (signed) artifacts. S3 "
        "carries the others.",
        group="cache",
        choices=("all", "tagged"),
    )
    max_upload_bytes: int = _option(
        5 * 1024**3,
        "The largest artifact, in bytes. S3 takes at most 5 GiB.",
        group="cache",
        minimum=1,
        maximum=5 * 1024**3,
    )
    max_events: int = _option(
        500, "Usage events in one request.", group="cache", minimum=1, maximum=1000
    )
    max_events_per_hour: int = _option(
        20_000_000,
        "Usage events of one key or session in an hour; more get 429. A million are stored, the others only counted.",
        group="cache",
        minimum=1000,
        maximum=10**9,
    )
    max_query_hashes: int = _option(
        500, "Hashes in one query.", group="cache", minimum=1, maximum=1000
    )

    default_key_length: int = _option(
        64,
        "Characters of a new key after its prefix: random letters, and a checksum of six.",
        group="keys",
        minimum=64,
        maximum=128,
    )
    default_key_prefix: str = _option(
        "",
        "The prefix of a new key if the request names none: letters, digits and `. _ : ~ -`, not beginning with "
        "`vca_`. `[prod]` of `samconfig.toml` sets `larder_`, which secret scanners can know.",
        group="keys",
        longest=32,
        pattern="^((?!vca_)[A-Za-z0-9_.:~-]{1,32})?$",
        rule="must be up to 32 letters, digits and . _ : ~ -, and not begin with vca_",
    )
    minimum_key_prefix_length: int = _option(
        1, "The fewest characters of a prefix.", group="keys", minimum=1, maximum=32
    )
    maximum_key_prefix_length: int = _option(
        32, "The most characters of a prefix.", group="keys", minimum=1, maximum=32
    )
    require_key_name: bool = _option(False, "Whether a new key must have a name.", group="keys")
    minimum_key_name_length: int = _option(
        1,
        "The fewest characters of a key's name.",
        group="keys",
        minimum=1,
        maximum=100,
    )
    maximum_key_name_length: int = _option(
        32,
        "The most characters of a key's name.",
        group="keys",
        minimum=1,
        maximum=100,
    )
    enable_key_metadata: bool = _option(True, "Whether a key may have metadata.", group="keys")
    default_key_expires_in_seconds: int = _option(
        0,
        "Seconds a new key is valid if the request names no lifetime. 0 means that it never expires.",
        group="keys",
        minimum=0,
        maximum=_CENTURY_SECONDS,
    )
    disable_custom_key_expiry: bool = _option(
        False,
        "Whether every key gets the default lifetime.",
        group="keys",
    )
    minimum_key_expires_in_seconds: int = _option(
        1,
        "The shortest lifetime that a request may give a key, in seconds.",
        group="keys",
        minimum=1,
        maximum=_CENTURY_SECONDS,
    )
    maximum_key_expires_in_seconds: int = _option(
        31_536_000,
        "The longest lifetime that a request may give a key, in seconds (a year).",
        group="keys",
        minimum=1,
        maximum=_CENTURY_SECONDS,
    )
    key_rate_limit_enabled: bool = _option(
        False, "Whether a new key has a rate limit if the request does not say.", group="keys"
    )
    key_rate_limit_window_ms: int = _option(
        86_400_000,
        "The window of a key's rate limit if the request names none, in milliseconds (a day).",
        group="keys",
        minimum=1,
        maximum=1_000_000_000_000,
    )
    key_rate_limit_max: int = _option(
        10,
        "Uses of a key in each window if the request names no number.",
        group="keys",
        minimum=1,
        maximum=1_000_000_000_000,
    )
    store_key_start: bool = _option(
        True,
        "Whether a key's prefix and first characters are stored, to recognize it.",
        group="keys",
    )
    key_start_length: int = _option(
        6,
        "Stored characters after the prefix.",
        group="keys",
        minimum=1,
        maximum=16,
    )
    disable_key_hashing: bool = _option(
        False,
        "Whether keys are stored in plain text, for everyone who can read the table. Not recommended.",
        group="keys",
    )
    default_key_permissions: str = _option(
        '{"artifacts":["read","write"]}',
        "The permissions of a new key if the request names none: JSON that maps resources to lists of actions.",
        group="keys",
        longest=128,
        pattern=_json(quotes=32),
        rule="must be a JSON object, in ASCII, with at most 32 quotes and no backslash",
    )
    login_token_expires_in_seconds: int = _option(
        7_776_000,
        "Seconds the key of `turbo login` is valid (90 days). The limits on the lifetime of keys apply.",
        group="keys",
        minimum=60,
        maximum=31_536_000,
    )
    max_keys_per_user: int = _option(
        100,
        "API keys that a user may have, or a team own. Expired keys do not count.",
        group="keys",
        minimum=1,
        maximum=1000,
    )
    protect_new_teams: str = _option(
        "when-trusted",
        "When a new team becomes [protected](protection.md): `when-trusted` by its first rule or key with "
        "`artifacts: trust`, `always` from the start, `never` by itself.",
        group="keys",
        choices=("always", "never", "when-trusted"),
    )
    trusted_issuers: str = _option(
        "https://token.actions.githubusercontent.com,https://token.actions.githubusercontent.com/*,"
        "https://token.actions.*.ghe.com,https://gitlab.com,https://oidc.circleci.com/org/*,"
        "https://agent.buildkite.com,https://vstoken.dev.azure.com/*,"
        "https://api.bitbucket.org/2.0/workspaces/*/pipelines-config/identity/oidc",
        "Issuers whose id tokens CI jobs can exchange, separated by commas. `*` stands for one label of the host or "
        "one part of the path. `larder issuers add` adds others.",
        group="keys",
        longest=800,
        pattern="^[A-Za-z0-9.:/*,_~ -]*$",
    )
    ci_token_seconds: int = _option(
        3600,
        "Seconds a CI job's token is valid, unless its rule says otherwise.",
        group="keys",
        minimum=300,
        maximum=21_600,
    )
    max_ci_tokens_per_hour: int = _option(
        5000,
        "Tokens that a team's trusted CI jobs can get in an hour, and as many for its other jobs.",
        group="keys",
        minimum=1,
        maximum=1_000_000,
    )
    session_for_api_keys: bool = _option(
        False,
        "Whether an API key in a header [counts as a session](api-keys.md#a-key-in-place-of-a-session) of its user.",
        group="keys",
    )
    disable_session_for_api_keys: bool = _option(
        False,
        "Whether an API key never counts as a session, whatever `SessionForApiKeys` says.",
        group="keys",
    )
    api_key_headers: str = _option(
        "x-api-key",
        "The headers that may hold such a key, separated by commas. The first that a request has counts.",
        group="keys",
        longest=80,
        pattern="^( *[A-Za-z0-9_-]+ *(,|$))*$",
        rule="must be names of headers, separated by commas",
    )
    api_key_schema: str = _option(
        "{}",
        "Other names for attributes in the table of API keys: JSON that maps a field of the record to its attribute.",
        group="keys",
        longest=400,
        pattern=_json(quotes=64),
        rule="must be JSON in ASCII, with at most 64 quotes and no backslash",
    )

    extensions: str = _option(
        "",
        "A module with [functions of your own](#custom-functions), such as `company.larder`.",
        group="extensions",
        longest=64,
        pattern=MODULE_PATTERN,
        rule="must be the name of a module, such as company.larder",
    )

    operator_emails: str = _option(
        "",
        "The [operators'](api-keys.md#operators) email addresses, separated by commas. On the local cloud, "
        "`operator@larder.local`.",
        group="accounts",
        longest=296,
        pattern=_international(r'( *[^@\s,"\\]+@[^@\s,"\\]+ *(,|$))*', most=49),
        rule="must be email addresses, separated by commas; at most 49 characters if some are not ASCII",
    )
    enable_email_and_password: bool = _option(
        True, "Whether people can sign up and sign in with email and password.", group="accounts"
    )
    sign_up_policy: str = _option(
        "invited",
        "Who can sign up: addresses with an open invitation to a team or of a domain in `AllowedEmailDomains` "
        "(`invited`), everyone (`open`), or no one (`closed`). On the local cloud, `open`.",
        group="accounts",
        choices=("invited", "open", "closed"),
    )
    # The pattern accepts letters outside ASCII, because the code converts such domains to their DNS names.
    allowed_email_domains: str = _option(
        "",
        "Domains whose email addresses may sign up, separated by commas: `example.com` or `@example.com`. If empty, "
        "`SignUpPolicy=open` allows every domain, and `invited` only invited addresses.",
        group="accounts",
        longest=512,
        pattern=_international(r'( *@?[^\s@,:/*_."\\]+(\.[^\s@,:/*_."\\]+)* *(,|$))*', most=80),
        rule="must be domains such as example.com, separated by commas; at most 80 characters if some are not ASCII",
    )
    require_email_verification: bool = _option(
        False,
        "Whether users must verify their email address before they can sign in.",
        group="accounts",
    )
    send_verification_on_sign_up: bool = _option(
        True,
        "Whether sign-up sends a link to verify the address. With `RequireEmailVerification` it always does.",
        group="accounts",
    )
    enable_change_email: bool = _option(
        True, "Whether users can change their email address.", group="accounts"
    )
    confirm_email_change: bool = _option(
        True,
        "Whether a user with a verified address must first confirm a change by a link to the old address.",
        group="accounts",
    )
    enable_delete_user: bool = _option(
        True, "Whether users can delete their own account.", group="accounts"
    )
    minimum_password_length: int = _option(
        8,
        "The fewest characters of a password.",
        group="accounts",
        minimum=1,
        maximum=128,
    )
    maximum_password_length: int = _option(
        128,
        "The most characters of a password.",
        group="accounts",
        minimum=8,
        maximum=1024,
    )
    refuse_common_passwords: bool = _option(
        False,
        "Whether new passwords cannot be one of the most common, such as `12345678`.",
        group="accounts",
    )
    scrypt_cost: int = _option(
        16384,
        "The cost N of scrypt, which hashes passwords: a power of two. Each doubling doubles a sign-in's time and "
        "memory.",
        group="accounts",
        minimum=1024,
        maximum=262_144,
        choices=tuple(2**exponent for exponent in range(10, 19)),
        rule="must be a power of two from 1024 to 262144",
    )
    revoke_sessions_on_password_reset: bool = _option(
        True, "Whether a password reset ends all sessions of the user.", group="accounts"
    )
    session_expires_in_seconds: int = _option(
        604_800,
        "Seconds a session is valid after its last extension (seven days).",
        group="accounts",
        minimum=60,
        maximum=_CENTURY_SECONDS,
    )
    session_max_age_seconds: int = _option(
        7_776_000,
        "Seconds after sign-in when a session ends, however often it is extended (90 days).",
        group="accounts",
        minimum=60,
        maximum=_CENTURY_SECONDS,
    )
    session_update_age_seconds: int = _option(
        86_400,
        "Seconds after which a session in use is extended again (a day).",
        group="accounts",
        minimum=0,
        maximum=_CENTURY_SECONDS,
    )
    session_fresh_age_seconds: int = _option(
        86_400,
        "Seconds after sign-in (a day) in which a session may list other sessions and, without the password, change "
        "the address, grant `turbo login` a key and delete its user.",
        group="accounts",
        minimum=60,
        maximum=_CENTURY_SECONDS,
    )
    reset_token_expires_in_seconds: int = _option(
        3600,
        "Seconds the link to reset a password is valid.",
        group="accounts",
        minimum=60,
        maximum=86_400,
    )
    verification_token_expires_in_seconds: int = _option(
        3600,
        "Seconds the link to verify an email address is valid.",
        group="accounts",
        minimum=60,
        maximum=604_800,
    )

    disable_team_creation: bool = _option(
        False, "Whether only operators can create teams over HTTP.", group="teams"
    )
    max_teams_per_user: int = _option(
        10,
        "Teams a user may create over HTTP, not counting deleted ones. 0 means no limit.",
        group="teams",
        minimum=0,
        maximum=1000,
    )
    max_open_invitations: int = _option(
        50, "Open invitations a team may have.", group="teams", minimum=1, maximum=500
    )

    product_name: str = _option(
        "Larder",
        "The name of the service in mail, on pages and as the sender's name.",
        group="mail",
        longest=64,
    )
    email_sender: str = _option(
        "",
        "The address that mail is sent from, without a name. SES must know it or its domain. Empty means that mail "
        "stays in the outbox, as always on the local cloud.",
        group="mail",
        longest=254,
        pattern="^([A-Za-z0-9.!#$%&'*+/=?^_~-]+@[A-Za-z0-9.-]+)?$",
        rule="must be an email address without a name",
    )
    outbox_retention_days: int = _option(
        7, "Days mail is kept in the outbox.", group="mail", minimum=1, maximum=365
    )

    base_url: str = _option(
        "",
        "The origin that clients use, such as `https://cache.example.com`, for links in mail, URLs of artifacts and "
        "origin checks. Empty means the API's own address.",
        group="requests",
        longest=96,
        pattern="^(https?://[A-Za-z0-9_.:-]+/?)?$",
        rule="must be an origin such as https://cache.example.com",
    )
    dual_stack: bool = _option(
        False,
        "Whether clients can use IPv6 as well as IPv4, for `DomainName`, which it requires, and for presigned URLs of"
        " S3. The API's own address stays IPv4.",
        group="requests",
    )
    trusted_origins: str = _option(
        "",
        "Other origins whose pages may call `/api/auth`, sign people in and be redirected to, separated by commas. `*` "
        "stands for one part of the host name.",
        group="requests",
        longest=256,
        pattern="^( *https?://[A-Za-z0-9_.:*-]+/? *(,|$))*$",
        rule="must be origins such as https://*.example.com, separated by commas",
    )
    trusted_proxy_hops: int = _option(
        0,
        "Proxies of your own in front of the API that add to `X-Forwarded-For`: 1 for CloudFront. 0 means that the "
        "API's caller is the client.",
        group="requests",
        minimum=0,
        maximum=10,
    )
    proxy_secret_hash: str = _option(
        "",
        "The SHA-256 of a secret, in base64. Requests without the secret in the header `X-Larder-Proxy-Secret`, which"
        " your proxy adds, get 403. Empty means that clients may call the API directly.",
        group="requests",
        longest=44,
        pattern="^([A-Za-z0-9+/]{43}=)?$",
        rule="must be the output of: openssl dgst -sha256 -binary | base64",
    )
    allowed_networks: str = _option(
        "",
        "Networks that clients may come from, such as `203.0.113.0/24,2001:db8::/32`, [for requests and presigned "
        "URLs](organization.md#networks). Others get 403. Empty means all.",
        group="requests",
        longest=350,
        pattern=_cidrs(),
        rule="must be networks such as 203.0.113.0/24 or 2001:db8::/32, separated by commas without spaces",
    )
    http_rate_limit_enabled: bool = _option(
        True,
        "Whether Larder limits requests to `/api/auth` by client address and path, wrong passwords by account, and "
        "creating teams and inviting people by user.",
        group="requests",
    )
    http_rate_limit_window_seconds: int = _option(
        10,
        "The window for paths without a stricter limit, in seconds.",
        group="requests",
        minimum=1,
        maximum=86_400,
    )
    http_rate_limit_max: int = _option(
        100,
        "Requests of one client address to one path in each window.",
        group="requests",
        minimum=1,
        maximum=1_000_000,
    )

    aws_client: str = _option(
        "wire",
        "The client for calls to AWS that builds wait for: `wire`, which starts and runs faster, or `boto3`, which "
        "all other calls use.",
        group="functions",
        choices=("wire", "boto3"),
    )

    @property
    def evicts(self) -> bool:
        return self.over_quota == "evict"

    if not TYPE_CHECKING:  # mypy would accept any name

        def __getattr__(self, name: str) -> NoReturn:
            """Called for an option without a value only, so that reading the others costs nothing."""
            if name not in self.__slots__:
                raise AttributeError(name)
            raise SettingsError(_not_set(name))


def listed(option: str) -> list[str]:
    """The values of an option that is a list, separated by commas."""
    return [entry.strip() for entry in option.split(",") if entry.strip()]


def environment_name(option: str) -> str:
    """The environment variable of an option: `retention_days` is `LARDER_RETENTION_DAYS`."""
    return f"LARDER_{option.upper()}"


def unpacked(environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` with a variable for each option in LARDER_OPTIONS. A variable of its own overrides the option there."""
    variables = dict(environ)
    for entry in variables.pop(PACKED, "").split():
        name, _, value = entry.partition("=")
        variables.setdefault(environment_name(name), value)
    return variables


def read_settings(environ: Mapping[str, str]) -> Settings:
    """Read the options that `environ` has. An empty text stands for the default.

    Raises SettingsError if a number is invalid or out of bounds, a text is too long, or a value is not one of the
    choices.
    """
    read = object.__new__(Settings)
    variables = unpacked(environ)
    for option in fields(Settings):
        name = environment_name(option.name)
        if (given := variables.get(name)) is None:
            continue
        if text := given.strip():
            object.__setattr__(read, option.name, _parsed(name, text, option.type, option.metadata))
        elif option.default is not _REQUIRED:
            object.__setattr__(read, option.name, option.default)
    return read


def check_resources(options: Settings) -> None:
    """For a process that needs all options: raises SettingsError if the name of a resource is missing."""
    for option in fields(Settings):
        if option.default is _REQUIRED:
            getattr(options, option.name)


def _not_set(option: str) -> str:
    (help,) = (setting.metadata["help"] for setting in fields(Settings) if setting.name == option)
    return f"{environment_name(option)} is not set: {help}"


def _parsed(name: str, text: str, kind: Any, metadata: Mapping[str, Any]) -> str | int | bool:
    value: str | int | bool
    if kind is int:
        value = _number(name, text, metadata)
    elif kind is bool:
        value = _truth(name, text)
    else:
        value = text
        if metadata["longest"] and len(text) > metadata["longest"]:
            raise SettingsError(
                f"{name} must have at most {metadata['longest']} characters, not {len(text)}"
            )
    choices = metadata["choices"]
    if choices and value not in choices:
        rule = metadata["rule"] or f"must be {' or '.join(choices)}"
        raise SettingsError(f"{name} {rule}, not {text!r}")
    return value


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
    """The options of this process, read once. After `settings.cache_clear()` they are read again."""
    return read_settings(os.environ)


@cache
def s3_endpoint() -> str | None:
    """botocore's own variable for an S3 endpoint other than Amazon's. Presigned URLs use it too."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or None


@cache
def edge_key_file() -> str | None:
    """On one machine: the file with the key of the edge. A stack has the key in its signing secret."""
    return os.environ.get("LARDER_EDGE_KEY") or None


@cache
def region() -> str:
    """The region, from Lambda's or botocore's own variable."""
    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"


def url_suffix() -> str:
    """The domain of AWS's services, which the stack knows. Looking it up in botocore makes cold starts longer.

    Without a stack's variable, as in the operator's command, only that of China differs.
    """
    own = os.environ.get("URL_SUFFIX")
    return own or ("amazonaws.com.cn" if region().startswith("cn-") else "amazonaws.com")


@cache
def metrics_namespace() -> str:
    """Powertools' own variable for the namespace of this deployment's metrics."""
    return os.environ.get("POWERTOOLS_METRICS_NAMESPACE") or "Larder"
