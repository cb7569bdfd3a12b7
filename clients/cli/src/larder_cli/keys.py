"""`larder keys`: API keys."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from larder import clock
from larder.api_keys.models import (
    CACHE_ACTIONS,
    FETCHES_ONLY,
    OWN_ACTIONS,
    TRUST,
    ApiKey,
    Daily,
    RateLimit,
    Refill,
)
from larder.api_keys.properties import NewKey
from larder.errors import InvalidValue
from larder_cli.commands import CommandGroup, examples, json_option, table_options
from larder_cli.ids import the_only
from larder_cli.mail_context import notify, operator_mail_context
from larder_cli.output import Record, echo, fields, print_json, print_record, print_table
from larder_cli.quantities import (
    json_value,
    period,
    period_ms,
    permission,
    seconds,
    seconds_or_none,
    size_bytes,
)
from larder_cli.teams import agree_to_protect, note_protection, require_team
from larder_cli.users import require_proven_user, require_user, unverified_option

if TYPE_CHECKING:
    from larder.accounts.team_members import Knower
    from larder.teams.models import Team

_OPTIONS = {
    "user_id": "--user",
    "expires_in": "--expires-in",
    "refill_amount": "--refill-amount",
    "refill_interval": "--refill-interval",
    "rate_limit_max": "--rate-limit-max",
    "rate_limit_time_window": "--rate-limit-window",
    "daily_requests": "--daily-requests",
    "daily_bytes": "--daily-size",
}
"""The fields of a key whose command-line options have another name."""

_LINES = {"refill_amount": "refill", "rate_limit_enabled": "rate_limit"}
"""The lines for people that show more than the field of the record does."""

_IN_OTHER_LINES = {"refill_interval_ms", "rate_limit_max", "rate_limit_window_ms"}

DAILY_REQUESTS = 50_000
DAILY_SIZE = "5GB"
"""The bounds of a public read key that names none: what it costs at most is in docs/trust.md."""


def _record(key: ApiKey, team_slug: str | None, knowers: "Sequence[Knower]" = ()) -> Record:
    """Every field of a key, for JSON. A rate limit that is off has null fields.

    `knowers` are the users who know the secret of a team's own key.
    """
    limit = key.rate_limit if key.rate_limit.enabled else None
    return {
        **fields(key, "id", "name", "start", "prefix"),
        "owner": "team" if key.owned_by_team else "user" if key.has_user else "rule",
        "user_id": key.user_id if key.has_user else None,
        **fields(key, "rule_id", "team_id"),
        "team": team_slug,
        **fields(key, "enabled", "permissions", "metadata", "remaining"),
        "refill_amount": key.refill.amount if key.refill else None,
        "refill_interval_ms": key.refill.interval_ms if key.refill else None,
        "last_refill_at": key.last_refill_at,
        "rate_limit_enabled": key.rate_limit.enabled,
        "rate_limit_max": limit.max_requests if limit else None,
        "rate_limit_window_ms": limit.window_ms if limit else None,
        "window_ends_at": key.window_ends_at if limit else None,
        **fields(key, "request_count", "expires_at", "created_at", "updated_at"),
        "last_request_at": key.last_request,
        "daily_requests": key.daily and key.daily.max_requests,
        "daily_bytes": key.daily and key.daily.max_bytes,
        "paused_on": key.daily and key.daily.paused_on,
        "made_by": key.made_by,
        "known_to": [fields(knower, "user_id", "name", "left_at") for knower in knowers],
    }


def _shown(
    key: ApiKey, team_slug: str | None, knowers: "Sequence[Knower]" = (), *, as_json: bool
) -> Record:
    """The record for JSON or, for people, with one line per limit and periods such as `1d`."""
    record = _record(key, team_slug, knowers)
    if as_json:
        return record
    refill, limit = key.refill, key.rate_limit
    lines: dict[str, object] = {
        "metadata": None if key.metadata is None else json.dumps(key.metadata, ensure_ascii=False),
        "refill_amount": refill and _every(refill.amount, refill.interval_ms),
        "rate_limit_enabled": _every(limit.max_requests, limit.window_ms)
        if limit.enabled
        else None,
        "known_to": ", ".join(map(_who, knowers)) or None,
    }
    return {
        _LINES.get(name, name): lines.get(name, value)
        for name, value in record.items()
        if name not in _IN_OTHER_LINES
    }


def _print_new(raw: str, record: Record, *, as_json: bool) -> None:
    if as_json:
        print_json({"key": raw, **record})
        return
    print_record(record, as_json=False)
    echo("The key, shown only now:", raw)


def _every(count: int, duration_ms: int) -> str:
    return f"{count:,} per {period(duration_ms)}"


def _who(knower: "Knower") -> str:
    return knower.name or f"a deleted user ({knower.user_id})"


def _knowers(keys: Iterable[ApiKey]) -> "dict[str, list[Knower]]":
    """The users who know the secrets of keys that their teams own, by the ids of the keys."""
    from larder.accounts.team_members import knowers

    found = {}
    for key in keys:
        known = knowers(key.team_id or "", key.known_to)
        found[key.id] = [known[user_id] for user_id in key.known_to]
    return found


def _warn_of_former_members(key: ApiKey, knowers: "Iterable[Knower]") -> None:
    """Say whose secret it still is after they have left the team."""
    for knower in knowers:
        if knower.left_at is not None:
            echo(
                f"{_who(knower)} left on {knower.left_at:%-d %B %Y} and knows this key. Rotate it:"
                f" `larder keys rotate {key.id}`",
                err=True,
            )


def _users(keys: Iterable[ApiKey]) -> dict[str, str]:
    """The email addresses of the users of keys, by id."""
    from larder.accounts.service import find_users

    found = find_users(sorted({key.user_id for key in keys if key.has_user}))
    return {user_id: user.email for user_id, user in found.items()}


def _owner(key: ApiKey, users: Mapping[str, str]) -> str:
    if key.has_user:
        return users.get(key.user_id, f"a deleted user ({key.user_id})")
    return "the team" if key.owned_by_team else "a rule"


def _team_slugs(keys: Iterable[ApiKey]) -> dict[str, str]:
    from larder.teams.teams import find_team

    team_ids = {key.team_id for key in keys if key.team_id is not None}
    found = {team_id: find_team(team_id) for team_id in team_ids}
    return {team_id: team.slug for team_id, team in found.items() if team is not None}


def _team_slug(key: ApiKey) -> str | None:
    return _team_slugs([key]).get(key.team_id or "")


def _team_of_member(id_or_slug: str, email: str, user_id: str) -> "Team":
    from larder.teams.members import role_of

    team = require_team(id_or_slug)
    if role_of(team.id, user_id) is None:
        raise click.ClickException(
            f"{email} is not a member of {team.slug}, so the key could not be used:"
            f" `larder teams add-member {team.slug} {email}` makes them one"
        )
    return team


def _with_trust(permissions: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    actions = permissions.get("artifacts", CACHE_ACTIONS)
    return {**permissions, "artifacts": tuple(dict.fromkeys([*actions, TRUST]))}


def _check_may_trust(team: "Team", email: str, user_id: str) -> None:
    from larder.teams.members import role_of

    role = role_of(team.id, user_id)
    if role is None or not role.names_trusted:
        raise click.ClickException(
            f"{email} is not an owner or admin of {team.slug}, so the team would refuse the key"
        )


def _require_key(id: str) -> ApiKey:
    """The key with this id, of which the first characters are enough. Raises ClickException.

    Only if no key has the id, those of all keys are read.
    """
    from larder.api_keys.keys import find_key, key_ids_from

    key = find_key(id) or find_key(the_only(id, key_ids_from(id), "keys") or id)
    if key is None:
        raise _no_such_key(id)
    return key


def _no_such_key(key_id: str) -> click.ClickException:
    return click.ClickException(
        f"there is no key with the id {key_id}: `larder keys list --user EMAIL` shows the ids"
    )


def _refill(remaining: int | None, amount: int | None, interval_ms: int | None) -> Refill | None:
    if amount is None and interval_ms is None:
        return None
    if amount is None or interval_ms is None:
        raise click.UsageError(
            "--refill-amount and --refill-interval belong together: give both or neither"
        )
    if remaining is None:
        raise click.UsageError(
            "--refill-amount and --refill-interval need --remaining, the number of uses to start with"
        )
    return Refill(interval_ms=interval_ms, amount=amount)


def _rate_limit(max_requests: int | None, window_ms: int | None) -> RateLimit | None:
    from larder.api_keys.keys import default_rate_limit

    if max_requests is None:
        if window_ms is not None:
            raise click.UsageError(
                "--rate-limit-window needs --rate-limit-max, the number of uses in one window"
            )
        return None
    window_ms = window_ms or default_rate_limit().window_ms
    return RateLimit(enabled=True, window_ms=window_ms, max_requests=max_requests)


def _warn_of_unknown(key: ApiKey) -> None:
    """Warn about resources that Larder does not check.

    They are allowed, because a service that has keys verified by Larder may check its own resources.
    """
    unknown = [name for name in key.permissions if name not in OWN_ACTIONS]
    of_deployment = _default_resources(key.user_id) if unknown and key.has_user else ()
    for name in unknown:
        if name not in of_deployment:
            echo(
                f"Warning: {name} is not a resource of Larder or of DefaultKeyPermissions, so it gives the key no"
                f" access to Larder. Larder's resources are {' and '.join(OWN_ACTIONS)}.",
                err=True,
            )


def _default_resources(user_id: str) -> Collection[str]:
    from larder.api_keys.keys import default_permissions

    return tuple(default_permissions(user_id, None))


@click.group(
    cls=CommandGroup,
    epilog=examples(
        "larder keys create --user ada@acme.example --team acme --name ci",
        "larder keys list --user ada@acme.example",
        "larder keys create --team acme --owned-by-team --name ci",
        "larder keys rotate 3QbT... --overlap 12h",
        "larder keys revoke 3QbT...",
    ),
)
def keys() -> None:
    """Manage API keys, which clients send as TURBO_TOKEN."""


@keys.command(
    "create",
    epilog=examples(
        "larder keys create --user ada@acme.example --team acme --name ci --expires-in 90d",
        "larder keys create --user ada@acme.example --team acme --name main --trusted",
        "larder keys create --team acme --owned-by-team --name ci",
        "larder keys create --team acme --public --name forks",
        "larder keys create --user ada@acme.example --permissions artifacts=read",
        "larder keys create --user ada@acme.example --remaining 500 --refill-amount 500"
        " --refill-interval 1d",
        "larder keys create --user ada@acme.example --rate-limit-max 1000 --rate-limit-window 1h",
        "TURBO_TOKEN=$(larder keys create --user ada@acme.example --json | jq -r .key)",
    ),
)
@click.option(
    "--user", metavar="EMAIL", help="The user who owns the key. Required without --owned-by-team."
)
@click.option(
    "--team",
    metavar="TEAM",
    help=(
        "Bind the key to this team, of which the user must be a member. By default, the key acts "
        "for the user and all their teams."
    ),
)
@click.option(
    "--owned-by-team",
    is_flag=True,
    help=(
        "The team owns the key, in place of a user, so that it works until the team is deleted. For CI. "
        "Needs --team."
    ),
)
@click.option(
    "--name",
    help="A name to recognize the key by. The deployment sets its length, by default 1 to 32 characters.",
)
@click.option(
    "--prefix",
    help="The first characters of the key: letters, digits and . _ : ~ -. The deployment sets its "
    "length, by default 1 to 32.",
)
@click.option(
    "--expires-in",
    type=seconds,
    metavar="TIME",
    help="How long the key is valid: 90s, 30m, 12h, 30d or 4w. By default, it never expires.",
)
@click.option(
    "--permissions",
    type=permission,
    multiple=True,
    metavar="RESOURCE=ACTIONS",
    help="What the key can do. Repeat the option for each resource: artifacts with read, write, manage, trust and "
    "replace, teams with read and write, or a resource that DefaultKeyPermissions names. "
    f"By default, artifacts={','.join(CACHE_ACTIONS)}.",
)
@click.option(
    "--trusted",
    is_flag=True,
    help="Also give the key artifacts=trust: it writes what everyone in a protected team reads. Needs --team. The "
    "first such key protects the team.",
)
@click.option(
    "--protect/--no-protect",
    default=None,
    help="Whether this protects the team if it is its first trusted key. By default it does, after a question if that "
    "hides stored artifacts. Needs --trusted.",
)
@click.option(
    "--metadata",
    type=json_value,
    metavar="JSON",
    help="Any JSON value to store with the key. Larder does not use it.",
)
@click.option(
    "--remaining",
    type=click.IntRange(min=0),
    metavar="N",
    help=(
        "How many uses the key has. The last one deletes it, unless it is refilled. With 0 and no "
        "refill, Larder always rejects the key. By default, uses are not limited."
    ),
)
@click.option(
    "--refill-amount",
    type=click.IntRange(min=1),
    metavar="N",
    help=(
        "How many uses each refill adds to the remaining uses. Needs --refill-interval and "
        "--remaining."
    ),
)
@click.option(
    "--refill-interval",
    type=period_ms,
    metavar="TIME",
    help="The time between refills: 1h, 1d. Needs --refill-amount and --remaining.",
)
@click.option(
    "--rate-limit-max",
    type=click.IntRange(min=1),
    metavar="N",
    help=(
        "How many uses the key has in one window. By default, the deployment decides; usually "
        "there is no rate limit."
    ),
)
@click.option(
    "--rate-limit-window",
    type=period_ms,
    metavar="TIME",
    help=(
        "The length of the window: 1m, 1h. By default, the deployment decides; usually a day. "
        "Needs --rate-limit-max."
    ),
)
@click.option(
    "--public",
    is_flag=True,
    help="A public read key, for forks: everyone may have it. It gets what all members read, up to a bound of "
    "each UTC day, and does nothing else. Needs --team, which owns it.",
)
@click.option(
    "--daily-requests",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"How many artifacts can be asked for with a public read key in a day. By default {DAILY_REQUESTS:,}.",
)
@click.option(
    "--daily-size",
    type=size_bytes,
    metavar="SIZE",
    help=f"How much can be downloaded with a public read key in a day. By default {DAILY_SIZE}.",
)
@unverified_option
@json_option
def create(
    user: str | None,
    team: str | None,
    owned_by_team: bool,
    name: str | None,
    prefix: str | None,
    expires_in: int | None,
    permissions: tuple[tuple[str, tuple[str, ...]], ...],
    trusted: bool,
    protect: bool | None,
    metadata: object,
    remaining: int | None,
    refill_amount: int | None,
    refill_interval: int | None,
    rate_limit_max: int | None,
    rate_limit_window: int | None,
    public: bool,
    daily_requests: int | None,
    daily_size: int | None,
    unverified: bool,
    as_json: bool,
) -> None:
    """Create a key and print it. The key is shown only once."""
    from larder.accounts.team_notices import notify_owners_of_key
    from larder.api_keys.keys import create_key
    from larder.teams.protection import NO_TRUST, confirm, first_trust

    daily = None
    if public:
        if permissions or trusted:
            raise click.UsageError("--public cannot have --permissions or --trusted: it only reads")
        owned_by_team, permissions = True, tuple(FETCHES_ONLY.items())
        daily = Daily(
            max_requests=daily_requests or DAILY_REQUESTS,
            max_bytes=size_bytes(DAILY_SIZE) if daily_size is None else daily_size,
        )
    elif daily_requests is not None or daily_size is not None:
        raise click.UsageError("--daily-requests and --daily-size need --public")
    if owned_by_team and (team is None or user is not None):
        flag = "--public" if public else "--owned-by-team"
        raise click.UsageError(f"{flag} needs --team, the owner of the key, and no --user")
    if user is None and not owned_by_team:
        raise click.UsageError(
            "--user is required, or --team and --owned-by-team for a key that a team owns"
        )
    if trusted and team is None:
        raise click.UsageError("--trusted needs --team, the team that trusts the key")
    if protect is not None and not trusted:
        raise click.UsageError("--protect and --no-protect need --trusted")
    granted = _with_trust(dict(permissions)) if trusted else dict(permissions)
    refill = _refill(remaining, refill_amount, refill_interval)
    rate_limit = _rate_limit(rate_limit_max, rate_limit_window)
    owner = None
    if user is not None:
        # Someone who signed up with the address could write what the key reads.
        owner = require_proven_user(
            user,
            instead="ask them to sign in and open the link to verify their address",
            unverified=unverified,
        )
        bound_to = None if team is None else _team_of_member(team, owner.email, owner.id)
    else:
        bound_to = require_team(team or "")
        granted = granted or {"artifacts": CACHE_ACTIONS}
    trust = NO_TRUST
    if bound_to is not None and TRUST in granted.get("artifacts", ()):
        if owner is not None:
            _check_may_trust(bound_to, owner.email, owner.id)
        trust = first_trust(bound_to.id, protect=protect is not False, actor=None)
        if protect is None:
            agree_to_protect(bound_to.slug, trust)
    new = NewKey(
        user_id=None if owner is None else owner.id,
        team_id=None if bound_to is None else bound_to.id,
        name=name,
        prefix=prefix,
        expires_in_s=expires_in,
        permissions=granted or None,
        metadata=metadata,
        remaining=remaining,
        refill=refill,
        rate_limit=rate_limit,
        daily=daily,
    )
    try:
        key, raw = create_key(new, trust=trust, now=clock.now())
        confirm(trust)
    except InvalidValue as refused:
        option = _OPTIONS.get(refused.field, f"--{refused.field}")
        raise click.ClickException(f"{option}: {refused.rule}") from refused
    _warn_of_unknown(key)
    slug = None if bound_to is None else bound_to.slug
    _print_new(raw, _shown(key, slug, as_json=as_json), as_json=as_json)
    # Only now, because this is the only copy of the key.
    if slug is not None:
        note_protection(slug, trust, "larder keys create")
    if key.may_trust:
        context = operator_mail_context("larder keys create")
        user_id = None if owner is None else owner.id
        notify(
            slug or "the teams",
            lambda: notify_owners_of_key(key.id, user_id, key.team_id, "", context),
        )


@keys.command(
    "list",
    epilog=examples("larder keys list --user ada@acme.example", "larder keys list --team acme"),
)
@click.option("--user", metavar="EMAIL", help="The user who owns the keys.")
@click.option(
    "--team", metavar="TEAM", help="The team that the keys are bound to, in place of a user."
)
@table_options
def list_(user: str | None, team: str | None, as_json: bool) -> None:
    """List the keys of a user or of a team.

    `start` shows how each key begins; Larder does not show complete keys. The list of a team has its own keys and those
    that users have bound to it, and says which former members still know a key. Keys of members that are bound to no
    team open it, too.
    """
    from larder.api_keys.keys import list_keys, list_keys_of_team

    if (user is None) == (team is None):
        raise click.UsageError("give either --user or --team")
    if user is not None:
        owner = require_user(user)
        found = list_keys(owner.id)
        empty = f"{owner.email} has no keys: `larder keys create --user {owner.email}` makes one"
    else:
        owning = require_team(team or "")
        found = list_keys_of_team(owning.id)
        empty = (
            f"{owning.slug} has no keys: `larder keys create --team {owning.slug} --owned-by-team`"
            " makes one"
        )
    slugs, known, users = _team_slugs(found), _knowers(found), _users(found)
    print_table(
        [
            {
                **_shown(key, slugs.get(key.team_id or ""), known[key.id], as_json=as_json),
                **({} if as_json else {"owner": _owner(key, users)}),
            }
            for key in found
        ],
        (
            *("id", "name", "start", "team" if team is None else "owner", "permissions", "enabled"),
            *("remaining", "rate_limit", "expires_at", "last_request_at"),
            *(() if team is None else ("known_to",)),
        ),
        empty=empty,
        as_json=as_json,
    )
    if not as_json:
        for key in found:
            _warn_of_former_members(key, known[key.id])
        if team is not None:
            echo(
                "Keys of members that are bound to no team open this one, too: `larder keys list --user EMAIL`",
                err=True,
            )


@keys.command("show", epilog=examples("larder keys show 3QbT..."))
@click.argument("key_id", metavar="KEY_ID")
@json_option
def show(key_id: str, as_json: bool) -> None:
    """Show the key with the id KEY_ID, with all its limits. Larder does not show the key itself."""
    key = _require_key(key_id)
    known = _knowers([key])[key.id]
    print_record(_shown(key, _team_slug(key), known, as_json=as_json), as_json=as_json)
    if not as_json:
        _warn_of_former_members(key, known)


@keys.command(
    "rotate",
    epilog=examples(
        "larder keys rotate 3QbT...",
        "larder keys rotate 3QbT... --overlap 1h",
        "larder keys rotate 3QbT... --overlap 0",
        "larder keys rotate 3QbT... --to-team",
    ),
)
@click.argument("key_id", metavar="KEY_ID")
@click.option(
    "--overlap",
    type=seconds_or_none,
    default="1d",
    show_default=True,
    metavar="TIME",
    help=(
        "How long the old key still works: 90s, 30m, 12h, 30d. If the key has an allowance, both "
        "keys get its remaining uses. 0 ends the old key at once."
    ),
)
@click.option(
    "--to-team",
    is_flag=True,
    help="The team that the key is bound to owns the new key, so that it works without its user.",
)
@json_option
def rotate(key_id: str, overlap: int, to_team: bool, as_json: bool) -> None:
    """Replace the key with the id KEY_ID by a new one.

    Prints the new key. It is shown only once. It has the same owner, name, team, permissions and limits. Its lifetime
    starts again.
    """
    from larder.api_keys.keys import find_key, rotate_key
    from larder.api_keys.ownership import rotate_to_team

    now, key_id = clock.now(), _require_key(key_id).id
    change = rotate_to_team if to_team else rotate_key
    made = change(key_id, overlap_s=overlap, now=now)
    if made is None:
        raise _no_such_key(key_id)
    key, raw = made
    # Its own expiry may come before the end of the overlap.
    old = find_key(key_id)
    old_ends_at = now if old is None else old.expires_at
    old_record = {"old_id": key_id, "old_expires_at": old_ends_at}
    shown = {**_shown(key, _team_slug(key), as_json=as_json), **old_record}
    _print_new(raw, shown, as_json=as_json)


@keys.command("adopt", epilog=examples("larder keys adopt 3QbT..."))
@click.argument("key_id", metavar="KEY_ID")
@json_option
def adopt(key_id: str, as_json: bool) -> None:
    """Let the team of the key KEY_ID own it.

    The secret stays the same.

    For CI that cannot change its key quickly. The user who owned it still knows it: `larder keys rotate` ends that.
    """
    from larder.api_keys.ownership import adopt_key

    key = adopt_key(_require_key(key_id).id, now=clock.now())
    if key is None:
        raise _no_such_key(key_id)
    shown = _shown(key, _team_slug(key), _knowers([key])[key.id], as_json=as_json)
    print_record(shown, as_json=as_json)


@keys.command("delete-expired", epilog=examples("larder keys delete-expired"))
@json_option
def delete_expired(as_json: bool) -> None:
    """Delete every expired key now.

    Larder rejects expired keys at once, and deletes them every hour.
    """
    from larder.api_keys.keys import delete_expired_keys

    print_record({"deleted": delete_expired_keys(now=clock.now())}, as_json=as_json)


@keys.command("revoke", epilog=examples("larder keys revoke 3QbT..."))
@click.argument("key_id", metavar="KEY_ID")
@json_option
def revoke(key_id: str, as_json: bool) -> None:
    """Delete the key with the id KEY_ID. Larder rejects it from the next request on."""
    from larder.api_keys.keys import revoke_key

    key = _require_key(key_id)
    owner = _owner(key, _users([key]))
    if not revoke_key(key):
        raise _no_such_key(key_id)
    record = fields(key, "id", "name", "start", "team_id", "permissions")
    print_record({**record, "owner": owner, "revoked": True}, as_json=as_json)
