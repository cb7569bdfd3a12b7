"""`larder artifacts`: the artifacts of a team or a user, and the audit."""

from collections.abc import Collection, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING

import click

from larder import clock
from larder.teams.models import SHARED_SCOPE
from larder_cli.commands import CommandGroup, examples, json_option, table_options
from larder_cli.ids import the_only
from larder_cli.output import Record, echo, fields, human_number, print_record, print_table
from larder_cli.owners import OWNER, Owner, require_owner
from larder_cli.quantities import moment
from larder_cli.teams import require_team
from larder_cli.users import require_user

if TYPE_CHECKING:
    from larder.artifacts.models import Artifact, ArtifactHash, View
    from larder.artifacts.selection import Selection
    from larder.audit.models import Action

_PAGE = 100
_MOST_ALIKE = 11


def _record(artifact: "Artifact") -> Record:
    from larder.artifacts.expiry import expires_at

    metadata, writer = artifact.metadata, artifact.writer
    return {
        "hash": artifact.upload.hash,
        **fields(artifact, "size_bytes", "created_at"),
        "expires_at": expires_at(artifact),
        "last_used_at": artifact.last_used_at,
        **fields(metadata, "duration_ms", "tag", "sha", "dirty_hash", "ci", "interactive"),
        "writer": None if writer is None else writer.credential_id,
        "user_id": None if writer is None else writer.holder_id,
    }


@click.group(
    cls=CommandGroup,
    epilog=examples(
        "larder artifacts list acme",
        "larder artifacts delete acme 08e4547d5347b63f",
        "larder artifacts delete acme --writer bob@acme.example",
        "larder artifacts audit acme",
    ),
)
def artifacts() -> None:
    """Manage the artifacts of a team or a user.

    TEAM is a slug or an id. EMAIL stands for the artifacts that the user stores without a team.
    """


@artifacts.command(
    "list",
    epilog=examples(
        "larder artifacts list acme",
        "larder artifacts list acme --limit 500",
        "larder artifacts list acme --order uploaded --from 2026-11-21T14:00",
        "larder artifacts list acme --writer bob@acme.example --ci GITHUB_ACTIONS",
        "larder artifacts list acme --scope all",
        "larder artifacts list eve@acme.example",
    ),
)
@click.argument("owner", metavar=OWNER)
@click.option(
    "--limit",
    type=click.IntRange(1, 100_000),
    default=50,
    show_default=True,
    help="The maximum number of artifacts to show.",
)
@click.option(
    "--scope",
    metavar="SCOPE",
    help="List what is in this scope of a protected team: the id of an own scope, shared (default) or all.",
)
@click.option(
    "--prefix", default="", metavar="TEXT", help="List those whose hash begins with this."
)
@click.option(
    "--writer",
    metavar="ID|EMAIL",
    help="List what a key, session or rule (ID) or a user (ID or EMAIL) uploaded.",
)
@click.option("--ci", metavar="NAME", help="List those of a CI vendor, such as GITHUB_ACTIONS.")
@click.option(
    "--from", "since", type=moment, metavar="TIME", help="List what was stored since then."
)
@click.option("--until", type=moment, metavar="TIME", help="List what was stored before then.")
@click.option(
    "--order",
    type=click.Choice(("hash", "uploaded")),
    default="hash",
    show_default=True,
    help="Sort by hash, or by the time of the upload, newest first.",
)
@click.option(
    "--hidden",
    is_flag=True,
    help="List also what readers do not see, such as what was stored before the team was protected.",
)
@table_options
def list_(
    owner: str,
    limit: int,
    scope: str | None,
    prefix: str,
    writer: str | None,
    ci: str | None,
    since: datetime | None,
    until: datetime | None,
    order: str,
    hidden: bool,
    as_json: bool,
) -> None:
    """List the artifacts of TEAM or EMAIL. The options select some of them.

    TIME is a day or a time, such as 2026-11-21T14:00, in UTC if it names no zone.
    """
    from larder.artifacts.models import is_hash, parse_scope, view_of
    from larder.artifacts.selection import ALL_SCOPES, Order, Selection

    if scope not in (None, ALL_SCOPES):
        parse_scope(scope)
    if prefix and not is_hash(prefix):
        raise click.UsageError("--prefix must be the beginning of a hash")
    _require_order(since, until)
    found = require_owner(owner)
    selection = Selection(
        order=Order(order),
        scope=scope or SHARED_SCOPE,
        prefix=prefix,
        writer=None if writer is None else _writer_id(writer),
        ci=ci,
        since=since,
        until=until,
        hidden=hidden,
    )
    view = view_of(found.state, None)
    records = []
    for artifact in _first(found.id, limit, selection, view):
        named: Record = {} if scope is None else {"scope": artifact.upload.scope_name}
        shown: Record = {"hidden": not view.shows(artifact)} if hidden else {}
        records.append({**_record(artifact), **named, **shown})
    print_table(
        records,
        (
            "hash",
            *(["scope"] if scope else []),
            *(["hidden"] if hidden else []),
            "size_bytes",
            "created_at",
            "expires_at",
            "ci",
            "writer",
        ),
        empty=_none_of(found, selection),
        as_json=as_json,
    )


def _none_of(owner: Owner, selection: "Selection") -> str:
    """What to say of an empty list."""
    from larder.artifacts.repository.totals import read_totals
    from larder.artifacts.selection import Selection

    if selection != Selection(order=selection.order):
        return f"{owner.name} stores no such artifacts"
    stored = read_totals(owner.id).artifacts
    if not stored:
        return f"{owner.name} stores nothing"
    return (
        f"{owner.name} shows none of its {human_number(stored)} artifacts: --hidden lists what readers do not see, and"
        " --scope all what own scopes have"
    )


@artifacts.command(
    "show",
    epilog=examples(
        "larder artifacts show acme 08e4547d5347b63f",
        "larder artifacts show acme 08e4547d5347b63f --scope all",
    ),
)
@click.argument("owner", metavar=OWNER)
@click.argument("hash", metavar="HASH")
@click.option(
    "--scope",
    metavar="SCOPE",
    help="Show it in this scope of a protected team: the id of an own scope, shared (default), or all in a table.",
)
@json_option
def show(owner: str, hash: str, scope: str | None, as_json: bool) -> None:
    """Show the artifact HASH of TEAM or EMAIL, and who uploaded it.

    HASH can be the first characters of the hash.
    """
    from larder.artifacts.models import parse_scope
    from larder.artifacts.selection import ALL_SCOPES

    own_scope = None if scope == ALL_SCOPES else parse_scope(scope or SHARED_SCOPE)
    found = require_owner(owner)
    parsed = _hash(found, hash, scope)
    if scope == ALL_SCOPES:
        _show_scopes_of(found, parsed, as_json=as_json)
        return
    artifact = _inspect(found, parsed, own_scope)
    named = {} if scope is None else {"scope": artifact.upload.scope_name}
    print_record({**_record(artifact), **named}, as_json=as_json)


@artifacts.command(
    "scopes", epilog=examples("larder artifacts scopes acme", "larder artifacts scopes acme --json")
)
@click.argument("team", metavar="TEAM")
@click.option(
    "--limit",
    type=click.IntRange(1, 100_000),
    default=100,
    show_default=True,
    help="The maximum number of scopes to show.",
)
@table_options
def scopes(team: str, limit: int, as_json: bool) -> None:
    """List the own scopes of a protected TEAM. Shows who writes them, and how much they hold."""
    from larder.artifacts.records import OwnScope
    from larder.trust.scopes import page_of_scopes

    found = require_team(team)
    listed: list[OwnScope] = []
    after: str | None = None
    while len(listed) < limit:
        size = min(_PAGE, limit - len(listed))
        page = page_of_scopes(found.id, found.state, after=after, limit=size)
        listed.extend(page.scopes)
        after = page.following
        if after is None:
            break
    print_table(
        [asdict(scope) | {"kind": scope.kind.value} for scope in listed],
        ("id", "kind", "name", "last_upload_at", "size_bytes", "artifacts", "counted_at"),
        empty=f"{found.slug} has no own scopes",
        as_json=as_json,
    )


@artifacts.command(
    "writer",
    epilog=examples(
        "larder artifacts writer acme 3QbT...", "larder artifacts writer acme 3QbT... --json"
    ),
)
@click.argument("team", metavar="TEAM")
@click.argument("id", metavar="ID")
@json_option
def writer(team: str, id: str, as_json: bool) -> None:
    """Show who is behind the writer ID of an artifact of TEAM.

    This is a run of a CI job, or an API key.
    """
    from larder.api_keys.keys import find_key
    from larder.audit.service import tokens

    found = require_team(team)
    entry = tokens([id]).get(id)
    if entry is not None and entry.details.get("team") == found.id:
        job = {name: value for name, value in entry.details.items() if name != "team"}
        record = {"writer": id, "kind": "ci", "rule": entry.subject, "issued_at": entry.at, **job}
        print_record(record, as_json=as_json)
        return
    key = find_key(id)
    if key is None or key.team_id not in (None, found.id):
        raise click.ClickException(
            f"{id} is neither a CI job of {found.slug} nor an existing API key."
            " It may be a session, or a key that was deleted: see `larder artifacts audit`"
        )
    print_record(
        {
            "writer": id,
            "kind": "key",
            "name": key.name,
            "user_id": key.user_id if key.has_user else None,
            "scope": SHARED_SCOPE if key.is_trusted else key.own_scope,
            "created_at": key.created_at,
            "expires_at": key.expires_at,
        },
        as_json=as_json,
    )


@artifacts.command(
    "delete",
    epilog=examples(
        "larder artifacts delete acme 08e4547d5347b63f 5347b63f08e4547d",
        "larder artifacts delete acme --writer 3QbT...",
        "larder artifacts delete acme --writer bob@acme.example",
        "larder artifacts delete eve@acme.example --writer eve@acme.example",
        "larder artifacts delete acme --scope k3QbT...",
        "larder artifacts delete acme --from 2026-11-21T14:00 --until 2026-11-21T15:30",
        "larder artifacts delete acme --all acme",
    ),
)
@click.argument("owner", metavar=OWNER)
@click.argument("hashes", metavar="[HASH]...", nargs=-1)
@click.option(
    "--writer",
    metavar="ID|EMAIL",
    help="Delete everything that a key or session (ID) or a user (ID or EMAIL) uploaded.",
)
@click.option(
    "--scope",
    metavar="SCOPE",
    help="Delete each HASH in this own scope of a protected team; without hashes, everything in it.",
)
@click.option(
    "--from",
    "since",
    type=moment,
    metavar="TIME",
    help="Delete what was stored since then, with --until.",
)
@click.option(
    "--until", type=moment, metavar="TIME", help="Delete what was stored before then, with --from."
)
@click.option(
    "--all",
    "all_of",
    metavar="TEAM|EMAIL",
    help="Delete everything. Repeat the slug or the email address.",
)
@table_options
def delete(
    owner: str,
    hashes: Sequence[str],
    writer: str | None,
    scope: str | None,
    since: datetime | None,
    until: datetime | None,
    all_of: str | None,
    as_json: bool,
) -> None:
    """Delete artifacts of TEAM or EMAIL.

    Deletes each HASH, everything from a writer, of a scope or of a time, or everything.

    HASH can be the first characters of the hash.
    TIME is a day or a time, such as 2026-11-21T14:00, in UTC if it names no zone.
    Downloads in progress complete. Later uploads are not affected.
    """
    from larder.artifacts.models import parse_scope
    from larder.artifacts.selection import EVERYTHING, Range

    ways = [hashes or scope, writer, since or until, all_of]
    if sum(way is not None for way in ways) != 1:
        raise click.UsageError("give hashes or --scope, --writer, --from with --until, or --all")
    if (since is None) != (until is None):
        raise click.UsageError("--from and --until must come together")
    _require_order(since, until)
    own_scope = parse_scope(scope or SHARED_SCOPE)
    if scope is not None and own_scope is None and not hashes:
        raise click.UsageError("--scope without hashes needs the id of an own scope")
    found = require_owner(owner)
    if all_of not in (None, found.name):
        raise click.UsageError(f"--all must repeat {found.name}")
    if hashes:
        records = _delete(found, hashes, own_scope)
        print_table(records, ("hash", "deleted"), empty="", as_json=as_json)
    elif writer is not None:
        id = _writer_id(writer)
        _delete_target(found, id, {"writer": id}, as_json=as_json)
    elif own_scope is not None:
        _delete_target(found, own_scope, {"scope": own_scope}, as_json=as_json)
    elif since is not None and until is not None:
        target = Range(since, until).target
        _delete_target(found, target, {"from": since, "until": until}, as_json=as_json)
    else:
        _delete_target(found, EVERYTHING, {"all": found.name}, as_json=as_json)


@artifacts.command(
    "audit",
    epilog=examples(
        "larder artifacts audit acme",
        "larder artifacts audit acme --action member_added --action member_removed",
        "larder artifacts audit acme --limit 500 --json",
    ),
)
@click.argument("owner", metavar=OWNER)
@click.option(
    "--limit",
    type=click.IntRange(1, 10_000),
    default=50,
    show_default=True,
    help="The maximum number of entries to show.",
)
@click.option(
    "--action",
    "named",
    metavar="ACTION",
    multiple=True,
    help="Show only entries with this action, such as member_added. You can give several.",
)
@table_options
def audit(owner: str, limit: int, named: Sequence[str], as_json: bool) -> None:
    """Show the audit of TEAM or EMAIL, newest first.

    It has who got access, and what was changed, deleted or replaced. A deleted team or user is found by its id.
    """
    actions = _actions(named)
    id, name = _audited_owner(owner)
    print_table(
        _newest(id, limit, actions),
        ("at", "action", "by", "name", "subject", "role", "artifacts", "size_bytes"),
        empty=f"the audit of {name} is empty",
        as_json=as_json,
    )


def _hash(owner: Owner, typed: str, scope: str | None) -> "ArtifactHash":
    """A whole hash, of which the first characters are enough. Raises ClickException."""
    from larder.artifacts.models import parse_hash, view_of
    from larder.artifacts.selection import Selection

    parsed = parse_hash(typed)
    # The whole hash sorts first.
    selection = Selection(prefix=parsed, scope=scope or SHARED_SCOPE, hidden=True)
    found = _first(owner.id, _MOST_ALIKE, selection, view_of(owner.state, None))
    known = the_only(parsed, (one.upload.hash for one in found), "artifacts")
    return parse_hash(known or typed)


def _inspect(owner: Owner, hash: "ArtifactHash", scope: str | None) -> "Artifact":
    """Raises ClickException."""
    from larder.artifacts import management
    from larder.artifacts.models import view_of
    from larder.artifacts.repository import index
    from larder.errors import ArtifactNotFound

    try:
        return management.inspect_artifact(
            index.read_entry(owner.id, hash, scope),
            view=view_of(owner.state, scope),
            now=clock.now(),
        )
    except ArtifactNotFound:
        place = f" in scope {scope}" if scope else ""
        raise click.ClickException(f"{owner.name} stores no artifact {hash}{place}") from None


def _show_scopes_of(owner: Owner, hash: "ArtifactHash", *, as_json: bool) -> None:
    from larder.artifacts import search
    from larder.artifacts.repository import index

    shared = index.read_entry(owner.id, hash)
    found: list[Artifact] = []
    after: str | None = ""
    while after is not None:
        page = search.list_scopes_of(
            owner.id, hash, shared, after=after, limit=_PAGE, now=clock.now()
        )
        found.extend(page.artifacts)
        after = page.following
    print_table(
        [{**_record(one), "scope": one.upload.scope_name} for one in found],
        ("scope", "size_bytes", "created_at", "expires_at", "ci", "writer"),
        empty=f"{owner.name} stores no artifact {hash}",
        as_json=as_json,
    )


def _require_order(since: datetime | None, until: datetime | None) -> None:
    """Raises UsageError."""
    if since is not None and until is not None and since >= until:
        raise click.UsageError("--from must be before --until")


def _first(owner: str, limit: int, selection: "Selection", view: "View") -> list["Artifact"]:
    from larder.artifacts.search import list_artifacts

    found: list[Artifact] = []
    after: str | None = ""
    while after is not None and len(found) < limit:
        size = min(_PAGE, limit - len(found))
        page = list_artifacts(owner, selection, view=view, after=after, limit=size, now=clock.now())
        found.extend(page.artifacts)
        after = page.following
    return found


def _delete(owner: Owner, hashes: Sequence[str], scope: str | None) -> list[Record]:
    from larder.artifacts.management import delete_artifact
    from larder.artifacts.models import view_of
    from larder.artifacts.repository import index

    records: list[Record] = []
    for hash in [_hash(owner, text, scope) for text in hashes]:
        entry = delete_artifact(
            owner.id,
            hash,
            index.read_entry(owner.id, hash, scope),
            by=None,
            scope=scope,
            view=view_of(owner.state, scope),
            now=clock.now(),
        )
        records.append({"hash": hash, "deleted": entry is not None})
    return records


def _delete_target(owner: Owner, target: str, named: Record, *, as_json: bool) -> None:
    """Delete everything that the target says. `named` is the target in the output."""
    from larder.artifacts.removals import delete_target_now

    report = delete_target_now(owner.id, target, now=clock.now())
    if report.finished and not report.artifacts and not report.offers:
        echo(f"{owner.name} has no such artifacts.", err=True)
    record = {
        **named,
        "artifacts": report.artifacts,
        "size_bytes": report.size_bytes,
        "refused_uploads": report.offers,
        "finished": report.finished,
    }
    print_record(record, as_json=as_json)


def _writer_id(writer: str) -> str:
    """The id of a key, session or user. Raises UsageError if `writer` is not a valid id."""
    from larder.artifacts.models import parse_writer_id
    from larder.errors import InvalidValue

    if "@" in writer:
        return require_user(writer).id
    try:
        return parse_writer_id(writer)
    except InvalidValue as error:
        raise click.UsageError(
            f"--writer {error.rule}, or a user's email address:"
            " `larder artifacts list` and `larder keys list --user EMAIL` show the ids"
        ) from None


def _actions(names: Sequence[str]) -> "frozenset[Action]":
    """Raises UsageError."""
    from larder.audit.models import Action

    if unknown := [name for name in names if name not in list(Action)]:
        known = ", ".join(sorted(Action))
        raise click.UsageError(f"--action {unknown[0]} is unknown: the actions are {known}")
    return frozenset(map(Action, names))


def _audited_owner(owner: str) -> tuple[str, str]:
    """The id and the name of an owner, even if it is deleted. Raises ClickException."""
    from larder.hashing import is_random_id
    from larder.teams.slugs import names_a_team
    from larder.teams.teams import find_team

    is_id = is_random_id(owner) or (names_a_team(owner) and find_team(owner) is None)
    if is_id:
        return owner, owner
    found = require_owner(owner)
    return found.id, found.name


def _newest(owner: str, limit: int, actions: Collection["Action"]) -> list[Record]:
    """`name` is that of the subject, if it has or had one.

    `by` is the user's email address, or the id of a user who no longer exists. Without a user it is what was used,
    such as a link, and without that the operator.
    """
    from larder.accounts.activity import read_activity
    from larder.audit.models import ABOUT_USERS

    records: list[Record] = []
    before = None
    while len(records) < limit:
        size = limit - len(records)
        page = read_activity(owner, before=before, limit=size, actions=actions, now=clock.now())
        for entry in page.entries:
            id = entry.actor.holder_id if entry.actor else None
            known = None if id is None else page.users.get(id)
            credential_id = entry.actor.credential_id if entry.actor else None
            member = page.users.get(entry.subject) if entry.action in ABOUT_USERS else None
            records.append(
                {
                    **fields(entry, "at", "action", "subject"),
                    "name": entry.name or (member.name if member else None),
                    "successor": entry.details.get("successor"),
                    **fields(entry, "role", "artifacts", "size_bytes"),
                    "by": known.email if known else id or credential_id or "operator",
                    "user_id": id,
                    "credential_id": credential_id,
                }
            )
        before = page.next_before
        if before is None:
            break
    return records
