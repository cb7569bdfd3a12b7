"""`larder keys`: API keys."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from larder import clock
from larder.api_keys.models import ARTIFACT_ACTIONS, ApiKey, NewKey
from larder_cli.commands import CommandGroup, examples, json_option
from larder_cli.output import Record, print_json, print_record, print_table
from larder_cli.quantities import permission, seconds
from larder_cli.teams import require_team
from larder_cli.users import require_user

if TYPE_CHECKING:
    from larder.teams.models import Team


def _record(key: ApiKey, team_slug: str | None) -> dict[str, object]:
    return {
        "id": key.id,
        "name": key.name,
        "start": key.start,
        "prefix": key.prefix,
        "user_id": key.user_id,
        "team_id": key.team_id,
        "team": team_slug,
        "enabled": key.enabled,
        "permissions": key.permissions,
        "expires_at": key.expires_at,
        "created_at": key.created_at,
        "last_request_at": key.last_request,
    }


def _team_slugs(keys: Iterable[ApiKey]) -> dict[str, str]:
    from larder.teams import service

    team_ids = {key.team_id for key in keys if key.team_id is not None}
    found = {team_id: service.find_team(team_id) for team_id in team_ids}
    return {team_id: team.slug for team_id, team in found.items() if team is not None}


def _team_of_member(id_or_slug: str, email: str, user_id: str) -> "Team":
    from larder.teams import service

    team = require_team(id_or_slug)
    if service.role_of(team.id, user_id) is None:
        raise click.ClickException(
            f"{email} is not a member of {team.slug}, so the key could not be used:"
            f" `larder teams add-member {team.slug} {email}` makes them one"
        )
    return team


@click.group(
    cls=CommandGroup,
    epilog=examples(
        "larder keys create --user ada@acme.example --team acme --name ci",
        "larder keys list --user ada@acme.example",
        "larder keys revoke 3QbT...",
    ),
)
def keys() -> None:
    """API keys, which clients present as TURBO_TOKEN."""


@keys.command(
    "create",
    epilog=examples(
        "larder keys create --user ada@acme.example --team acme --name ci --expires-in 90d",
        "larder keys create --user ada@acme.example --permissions artifacts=read",
        "TURBO_TOKEN=$(larder keys create --user ada@acme.example --json | jq -r .key)",
    ),
)
@click.option("--user", required=True, metavar="EMAIL", help="Whose key it is.")
@click.option(
    "--team",
    metavar="TEAM",
    help="Bind it to this team (slug or id), of which the user is a member; else it acts for the"
    " user and all their teams.",
)
@click.option("--name", help="What to recognise it by, 1 to 32 characters.")
@click.option(
    "--prefix", help="What it begins with: 1 to 32 letters, digits, underscores, hyphens."
)
@click.option(
    "--expires-in", type=seconds, metavar="TIME", help="90s, 30m, 12h, 30d or 4w; else never."
)
@click.option(
    "--permissions",
    type=permission,
    multiple=True,
    metavar="RESOURCE=ACTIONS",
    help="What it may do; can be given again for other resources."
    f"  [default: artifacts={','.join(ARTIFACT_ACTIONS)}]",
)
@json_option
def create(
    user: str,
    team: str | None,
    name: str | None,
    prefix: str | None,
    expires_in: int | None,
    permissions: tuple[tuple[str, tuple[str, ...]], ...],
    as_json: bool,
) -> None:
    """Make a key and print it. It is shown this once: only its hash is stored."""
    from larder.api_keys import service

    owner = require_user(user)
    bound_to = None if team is None else _team_of_member(team, owner.email, owner.id)
    new = NewKey(
        user_id=owner.id,
        team_id=None if bound_to is None else bound_to.id,
        name=name,
        prefix=prefix,
        expires_in_s=expires_in,
        permissions=dict(permissions) or {"artifacts": ARTIFACT_ACTIONS},
    )
    key, raw = service.create_key(new, now=clock.now())
    record: Record = _record(key, None if bound_to is None else bound_to.slug)
    if as_json:
        print_json({"key": raw, **record})
        return
    print_record(record, as_json=False)
    click.echo("The key, shown only now:")
    click.echo(raw)


@keys.command("list", epilog=examples("larder keys list --user ada@acme.example"))
@click.option("--user", required=True, metavar="EMAIL", help="Whose keys.")
@json_option
def list_(user: str, as_json: bool) -> None:
    """List a user's keys, oldest first. The keys themselves are not stored; `start` is how each begins."""
    from larder.api_keys import service

    owner = require_user(user)
    found = service.list_keys(owner.id)
    slugs = _team_slugs(found)
    print_table(
        [_record(key, slugs.get(key.team_id or "")) for key in found],
        ("id", "name", "start", "team", "permissions", "enabled", "expires_at", "last_request_at"),
        empty=f"{owner.email} has no keys: `larder keys create --user {owner.email}` makes one",
        as_json=as_json,
    )


@keys.command("revoke", epilog=examples("larder keys revoke 3QbT..."))
@click.argument("key_id", metavar="KEY_ID")
@json_option
def revoke(key_id: str, as_json: bool) -> None:
    """Delete the key with the id KEY_ID. It is refused from the next request on."""
    from larder.api_keys import service

    if not service.revoke_key(key_id):
        raise click.ClickException(
            f"there is no key with the id {key_id}: `larder keys list --user EMAIL` names the ids"
        )
    print_record({"id": key_id, "revoked": True}, as_json=as_json)
