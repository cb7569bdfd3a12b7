"""The roles in teams that a provider gives: to people of groups, and to everyone."""

from typing import TYPE_CHECKING, TypedDict

import click

from larder.teams.models import Role
from larder_cli.commands import TargetCommand, examples, json_option
from larder_cli.output import echo, print_record
from larder_cli.teams import require_team, role_option

if TYPE_CHECKING:
    from larder.sso.models import TeamMapping


class TeamRoles(TypedDict):
    """The roles in a team by group, and that of everyone, if they have one."""

    team: str
    groups: dict[str, str]
    everyone: str | None


_group_option = click.option(
    "--group", metavar="NAME", help="The group, exactly as the provider names it in its claim."
)
_everyone_option = click.option(
    "--everyone", is_flag=True, help="Everyone who signs in with the provider, without groups."
)
_team_option = click.option("--team", required=True, metavar="TEAM", help="The slug or id.")


@click.command(
    "map",
    cls=TargetCommand,
    epilog=examples(
        "larder sso map acme --group eng --team web --role MEMBER",
        "larder sso map acme --everyone --team docs --role VIEWER",
    ),
)
@click.argument("id", metavar="ID")
@_group_option
@_everyone_option
@_team_option
@role_option(
    "The role in the team. Of several that a person gets, the highest counts.", required=True
)
@json_option
def map_group(
    id: str, group: str | None, everyone: bool, team: str, role: str, as_json: bool
) -> None:
    """Give a group of the provider ID a role in a team.

    Each sign-in applies it: it adds the person, changes their role, or removes them if they have lost the group.
    Memberships that people made stay as they are. A provider gives roles in at most 20 teams.
    """
    from larder.sso import memberships, service

    _check_one(group, everyone)
    provider, found = service.require_provider(id), require_team(team)
    if group is not None and provider.groups_claim is None:
        raise click.ClickException(
            f"{id} sends no groups: name their claim with `larder sso set {id} --groups-claim NAME`"
        )
    given = Role(role.upper())
    if given is Role.OWNER:
        echo(
            f"Warning: the admins of {provider.name} can now make anyone an owner of {found.slug}",
            err=True,
        )
    _print(memberships.map_group(id, found.id, group, given), found.slug, as_json=as_json)


@click.command(
    "unmap",
    cls=TargetCommand,
    epilog=examples(
        "larder sso unmap acme --group eng --team web",
        "larder sso unmap acme --everyone --team docs",
    ),
)
@click.argument("id", metavar="ID")
@_group_option
@_everyone_option
@_team_option
@json_option
def unmap_group(id: str, group: str | None, everyone: bool, team: str, as_json: bool) -> None:
    """Undo `map`. The memberships that it gave end when their people sign in again."""
    from larder.sso import memberships, service

    _check_one(group, everyone)
    service.require_provider(id)
    found = require_team(team)
    _print(memberships.unmap_group(id, found.id, group), found.slug, as_json=as_json)


def mappings_of(provider_id: str) -> list[TeamRoles]:
    """The roles that a provider gives, for `larder sso show`."""
    from larder.sso import memberships
    from larder.teams.teams import find_team

    found = []
    for mapping in memberships.list_mappings(provider_id):
        team = find_team(mapping.team_id)
        if team is not None and mapping.given:
            found.append(_record(mapping, team.slug))
    return found


def described(mapping: TeamRoles) -> str:
    """One line about the roles in a team."""
    given = [f"{group} {role}" for group, role in mapping["groups"].items()]
    if mapping["everyone"] is not None:
        given.append(f"everyone {mapping['everyone']}")
    return f"Team {mapping['team']}: {', '.join(given)}"


def _check_one(group: str | None, everyone: bool) -> None:
    if (group is None) is not everyone:
        raise click.UsageError("name one of --group and --everyone")


def _record(mapping: "TeamMapping", slug: str) -> TeamRoles:
    return {
        "team": slug,
        "groups": {group: role.value for group, role in mapping.groups.items()},
        "everyone": None if mapping.everyone is None else mapping.everyone.value,
    }


def _print(mapping: "TeamMapping", slug: str, *, as_json: bool) -> None:
    print_record({"id": mapping.provider_id, **_record(mapping, slug)}, as_json=as_json)
