"""`larder teams`: teams, their members and invitations, and their settings."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from larder import clock
from larder.errors import LastOwner, MemberNotFound
from larder.teams.models import ROLE_WORDS, People, Role, RunInputs
from larder.teams.teams import TeamChange
from larder_cli.commands import CommandGroup, examples, json_option, table_options
from larder_cli.mail_context import notify, operator_mail_context
from larder_cli.output import Record, echo, fields, human_number, print_record, print_table
from larder_cli.owner_state import (
    StateChange,
    agree_to_change,
    change_state,
    check_change,
    state_options,
    state_record,
    stored_record,
)
from larder_cli.receipt import print_with_receipt, rotate_known_option
from larder_cli.users import require_proven_user, require_user, unverified_option

if TYPE_CHECKING:
    from larder.artifacts.models import Totals
    from larder.invitations.models import Invitation
    from larder.teams.models import Team
    from larder.teams.protection import FirstTrust, ProtectionChange

Command = TypeVar("Command", bound=Callable[..., Any])


def role_option(words: str, **settings: Any) -> Callable[[Command], Command]:
    """The option `--role`. Its help text offers and explains the roles to choose from."""
    explained = " ".join(f"{role}: {can}" for role, can in ROLE_WORDS.items())
    return click.option(
        "--role",
        type=click.Choice([role.value for role in Role], case_sensitive=False),
        metavar="ROLE",
        help=f"{words} {explained}",
        **settings,
    )


_role_option = role_option("The role in the team.", default=Role.MEMBER.value, show_default=True)


def require_team(id_or_slug: str) -> "Team":
    """The team with this slug or id. Raises ClickException."""
    from larder.teams.teams import find_team

    team = find_team(id_or_slug)
    if team is None:
        raise click.ClickException(f"there is no team {id_or_slug}: {_meant(id_or_slug)}")
    return team


def note_protection(slug: str, trust: "FirstTrust", command: str) -> None:
    """If naming a trusted credential has protected the team, say it on standard error, and email the owners."""
    if trust.protects:
        echo(
            f"{slug} is now protected: only trusted credentials write what everyone in it reads, and what is stored"
            f" until now is hidden. `larder teams unprotect {slug}` ends that.",
            err=True,
        )
        _notify_owners(slug, trust.team_id, command)


def agree_to_protect(slug: str, trust: "FirstTrust") -> None:
    """Ask if naming a trusted credential hides what the team stores."""
    from larder.artifacts.repository.totals import read_totals

    stored = read_totals(trust.team_id).artifacts if trust.protects else 0
    if stored:
        click.confirm(
            f"This protects {slug}: its {human_number(stored)} stored artifacts are hidden, so the next trusted builds"
            " miss. `larder teams protect --keep-stored` shows them still. Protect it now? (--protect and --no-protect"
            " answer this)",
            abort=True,
            err=True,
        )


def _notify_owners(slug: str, team_id: str, command: str, *, ended: bool = False) -> None:
    """Email the owners that the team is protected, or no longer."""
    from larder.accounts.team_notices import notify_owners_of_protection

    context = operator_mail_context(command)
    notify(slug, lambda: notify_owners_of_protection(team_id, context, ended=ended))


def _meant(unknown: str) -> str:
    """What to do instead. An `@` means that the operator gave an email address: slugs and ids contain none."""
    if "@" not in unknown:
        return "`larder teams list` lists the teams"
    return (
        f"an email address names a user. Use `larder users show {unknown}`, `larder users set {unknown}` or"
        f" `larder usage {unknown}`; `larder teams list` lists the teams"
    )


def _record(team: "Team") -> Record:
    return fields(team, "id", "slug", "name", "former_slugs", "created_at")


def _list_record(team: "Team", totals: "Totals") -> Record:
    return {
        **_record(team),
        **fields(team.state, "caching", "block", "quota_bytes"),
        **stored_record(totals),
    }


def _invitation_record(invitation: "Invitation") -> Record:
    return fields(invitation, "id", "email", "role", "created_at", "expires_at")


@contextmanager
def _explain_last_owner(team: "Team", email: str) -> Iterator[None]:
    try:
        yield
    except LastOwner:
        raise click.ClickException(
            f"{email} is the only owner of {team.slug}: make another user an owner first,"
            f" with `larder teams add-member {team.slug} EMAIL --role OWNER`"
        ) from None


def _print_team(team: "Team", *, as_json: bool) -> None:
    settings = {**state_record(team.id, team.state), "run_inputs": team.run_inputs.value}
    print_record({**_record(team), **settings}, as_json=as_json)


@click.group(
    cls=CommandGroup,
    epilog=examples(
        "larder teams create --name Acme --slug acme --owner ada@acme.example",
        "larder teams add-member acme bob@acme.example --role MEMBER",
        "larder teams invite acme eve@acme.example --role MEMBER",
        "larder teams set acme --quota 50GB",
        "larder teams protect acme",
    ),
)
def teams() -> None:
    """Manage teams, members, invitations and limits.

    TEAM is a slug or an id.
    """


@teams.command(
    "create",
    epilog=examples("larder teams create --name Acme --slug acme --owner ada@acme.example"),
)
@click.option("--name", required=True, help="The name of the team, 1 to 100 characters.")
@click.option(
    "--slug",
    required=True,
    help=(
        "The team's name for clients (TURBO_TEAM): 1 to 48 lower-case letters, digits and inner "
        "hyphens. It must be unique."
    ),
)
@click.option("--owner", required=True, metavar="EMAIL", help="The user who owns the team.")
@click.option(
    "--reuse-slug",
    is_flag=True,
    help="Allow a slug that a deleted or renamed team had. CI of that team may still use it.",
)
@unverified_option
@json_option
def create(
    name: str, slug: str, owner: str, reuse_slug: bool, unverified: bool, as_json: bool
) -> None:
    """Create a team with its first owner."""
    from larder.teams.teams import create_team

    user = require_proven_user(
        owner,
        instead="create the team with another owner, and invite them with `larder teams invite`",
        unverified=unverified,
    )
    team = create_team(name, slug, owner_user_id=user.id, reuses_slug=reuse_slug, now=clock.now())
    _print_team(team, as_json=as_json)


@teams.command("list", epilog=examples("larder teams list", "larder teams list --json"))
@table_options
def list_(as_json: bool) -> None:
    """List all teams, and how much each stores."""
    from larder.artifacts.repository.totals import read_totals_of
    from larder.teams.teams import list_teams

    found = list_teams()
    stored = read_totals_of([team.id for team in found])
    print_table(
        [_list_record(team, stored[team.id]) for team in found],
        ("slug", "name", "id", "caching", "block", "stored_bytes", "quota_bytes", "created_at"),
        empty="there are no teams: create one with `larder teams create`",
        as_json=as_json,
    )


@teams.command("show", epilog=examples("larder teams show acme"))
@click.argument("team", metavar="TEAM")
@json_option
def show(team: str, as_json: bool) -> None:
    """Show the settings, storage and caching status of TEAM. The status is what its clients see."""
    _print_team(require_team(team), as_json=as_json)


@teams.command(
    "rename",
    epilog=examples(
        'larder teams rename acme --name "Acme, Inc."',
        "larder teams rename acme --slug acme-inc",
        "larder teams rename acme-inc --free-former-slugs",
    ),
)
@click.argument("team", metavar="TEAM")
@click.option("--name", help="The new name, 1 to 100 characters.")
@click.option(
    "--slug",
    help="The new slug: 1 to 48 lower-case letters, digits and inner hyphens. The current slug keeps "
    "working.",
)
@click.option(
    "--free-former-slugs",
    is_flag=True,
    help=(
        "Release all former slugs of the team, and with --slug also the current one. Other teams can "
        "then use them."
    ),
)
@json_option
def rename(
    team: str, name: str | None, slug: str | None, free_former_slugs: bool, as_json: bool
) -> None:
    """Change the name or the slug of TEAM."""
    from larder.teams.teams import change_team

    if name is None and slug is None and not free_former_slugs:
        raise click.UsageError("nothing to change: give --name, --slug or --free-former-slugs")
    found = require_team(team)
    change = TeamChange(name=name, slug=slug, former_slugs=() if free_former_slugs else None)
    change_team(found.id, change, by=None, now=clock.now())
    _print_team(require_team(found.id), as_json=as_json)


@teams.command("run-inputs", epilog=examples("larder teams run-inputs acme names"))
@click.argument("team", metavar="TEAM")
@click.argument("kept", type=click.Choice([inputs.value for inputs in RunInputs]))
@json_option
def run_inputs(team: str, kept: str, as_json: bool) -> None:
    """Set what is kept of the inputs of TEAM's runs.

    Larder explains misses with them. names keeps the names of files and variables, and digests of files; values also
    a code of each variable's value.
    """
    from larder.teams.teams import change_team

    found = require_team(team)
    change_team(found.id, TeamChange(run_inputs=RunInputs(kept)), by=None, now=clock.now())
    _print_team(require_team(found.id), as_json=as_json)


@teams.command(
    "delete", epilog=examples("larder teams delete acme", "larder teams delete acme --yes")
)
@click.argument("team", metavar="TEAM")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@json_option
def delete(team: str, yes: bool, as_json: bool) -> None:
    """Delete TEAM. All access ends at once; its artifacts are deleted within hours."""
    from larder.teams.teams import delete_team

    found = require_team(team)
    if not yes:
        click.confirm(
            f"Delete {found.slug} ({found.id}), with its artifacts, keys and members?",
            abort=True,
            err=True,
        )
    delete_team(found.id, by=None, now=clock.now())
    print_record({"id": found.id, "slug": found.slug, "deleted": True}, as_json=as_json)


@teams.command("members", epilog=examples("larder teams members acme"))
@click.argument("team", metavar="TEAM")
@table_options
def members(team: str, as_json: bool) -> None:
    """List the members of TEAM, with their roles."""
    from larder.accounts.service import find_users
    from larder.teams.members import list_members

    found = require_team(team)
    there = list_members(found.id)
    users = find_users([member.user_id for member in there])
    records: list[Record] = []
    for member in there:
        # A user who has just deleted their account stays listed for up to an hour.
        user = users.get(member.user_id)
        records.append(
            {
                "role": member.role.value,
                "email": None if user is None else user.email,
                "name": None if user is None else user.name,
                "proven": None if user is None else user.proven,
                "user_id": member.user_id,
                "joined_at": member.joined_at,
            }
        )
    print_table(
        records,
        ("role", "email", "name", "proven", "joined_at"),
        empty=f"{found.slug} has no members: add one with `larder teams add-member {found.slug}`",
        as_json=as_json,
    )


@teams.command(
    "add-member",
    epilog=examples("larder teams add-member acme bob@acme.example --role MEMBER"),
)
@click.argument("team", metavar="TEAM")
@click.argument("email", metavar="EMAIL")
@_role_option
@unverified_option
@json_option
def add_member(team: str, email: str, role: str, unverified: bool, as_json: bool) -> None:
    """Add the user EMAIL to TEAM, or change a member's role."""
    from larder.teams import members
    from larder.trust.makers import notify_of_member, traces_in

    found = require_team(team)
    user = require_proven_user(
        email,
        instead=f"invite them with `larder teams invite {found.slug} {email} --role {role}`",
        unverified=unverified,
    )
    was = members.role_of(found.id, user.id)
    with _explain_last_owner(found, user.email):
        members.add_member(found.id, user.id, Role(role), now=clock.now())
    record = {"team": found.slug, "email": user.email, "role": role}
    demoted = was is not None and was.names_trusted and not Role(role).names_trusted
    traces = [traces_in(found.id, user, now=clock.now())] if demoted else []
    if demoted:
        context = operator_mail_context("larder teams add-member")
        notify(found.slug, lambda: notify_of_member(found.id, user.id, context))
    if demoted or as_json:
        print_with_receipt(record, user.email, traces, as_json=as_json)
    else:
        print_record(record, as_json=False)


@teams.command("invite", epilog=examples("larder teams invite acme eve@acme.example --role MEMBER"))
@click.argument("team", metavar="TEAM")
@click.argument("email", metavar="EMAIL")
@_role_option
@json_option
def invite(team: str, email: str, role: str, as_json: bool) -> None:
    """Send EMAIL a link to join TEAM. It works once, within seven days.

    The recipient signs in or signs up with that address. An earlier invitation to TEAM ends.
    """
    from larder.accounts import team_invitations

    found = require_team(team)
    (made,) = team_invitations.send_invitations(
        found.id,
        [team_invitations.InvitationWanted(email=email, role=Role(role))],
        operator_mail_context("larder teams invite"),
        by=None,
        now=clock.now(),
    )
    print_record({"team": found.slug, **_invitation_record(made)}, as_json=as_json)


@teams.command("invitations", epilog=examples("larder teams invitations acme"))
@click.argument("team", metavar="TEAM")
@table_options
def invitations(team: str, as_json: bool) -> None:
    """List the open invitations of TEAM."""
    from larder.invitations import service

    found = require_team(team)
    open_ones = service.open_invitations(found.id, now=clock.now())
    print_table(
        [_invitation_record(one) for one in open_ones],
        ("role", "email", "created_at", "expires_at"),
        empty=f"{found.slug} has no open invitations: create one with `larder teams invite {found.slug}`",
        as_json=as_json,
    )


@teams.command("withdraw", epilog=examples("larder teams withdraw acme eve@acme.example"))
@click.argument("team", metavar="TEAM")
@click.argument("email", metavar="EMAIL")
@json_option
def withdraw(team: str, email: str, as_json: bool) -> None:
    """Withdraw the invitation of EMAIL to TEAM. Its link stops working."""
    from larder.addresses import canonical
    from larder.invitations import service

    found, now, address = require_team(team), clock.now(), canonical(email)
    open_ones = service.open_invitations(found.id, now=now)
    ids = [one.id for one in open_ones if one.address == address]
    if not ids:
        raise click.ClickException(f"{found.slug} has no open invitation for {email}")
    ended = service.withdraw(found.id, ids[0], by=None, now=now)
    print_record({"team": found.slug, "email": ended.email, "withdrawn": True}, as_json=as_json)


@teams.command("remove-member", epilog=examples("larder teams remove-member acme bob@acme.example"))
@click.argument("team", metavar="TEAM")
@click.argument("email", metavar="EMAIL")
@rotate_known_option
@json_option
def remove_member(team: str, email: str, rotate_known: bool, as_json: bool) -> None:
    """Remove the user EMAIL from TEAM. Their keys stop working for TEAM at once, and those bound to it are deleted.

    Lists the keys of the team that the user knows and the rules that they added, and mails them to the owners.
    """
    from larder.api_keys.keys import delete_keys_of_member, list_keys
    from larder.teams import members
    from larder.trust.makers import notify_of_member, traces_in

    found, user = require_team(team), require_user(email)
    bound = [key.id for key in list_keys(user.id) if key.team_id == found.id]
    context = operator_mail_context("larder teams remove-member")
    try:
        with _explain_last_owner(found, user.email):
            members.remove_member(found.id, user.id, by=None)
            notify(found.slug, lambda: notify_of_member(found.id, user.id, context))
            delete_keys_of_member(found.id, user.id)
    except MemberNotFound:
        raise click.ClickException(f"{user.email} is not a member of {found.slug}") from None
    traces = [traces_in(found.id, user, now=clock.now())]
    record = {"team": found.slug, "email": user.email, "removed": True, "keys_ended": bound}
    print_with_receipt(record, user.email, traces, rotates=rotate_known, as_json=as_json)


@teams.command(
    "set",
    epilog=examples(
        "larder teams set acme --quota 50GB",
        "larder teams set acme --caching paused",
        'larder teams set acme --block payment_missing --reason "invoice 1042"',
        "larder teams set acme --unblock --default-quota",
    ),
)
@click.argument("team", metavar="TEAM")
@state_options
@json_option
def set_(team: str, as_json: bool, **typed: Any) -> None:
    """Change the caching, the block or the quota of TEAM.

    Settings without an option stay unchanged. Changes take effect at the team's next request.
    """
    change = StateChange(**typed)
    check_change(change)
    found = require_team(team)
    agree_to_change(found.id, found.slug, change)
    change_state(found.id, change)
    _print_team(require_team(found.id), as_json=as_json)


@teams.command(
    "protect",
    epilog=examples(
        "larder teams protect acme",
        "larder teams protect acme --keep-stored",
        "larder teams protect acme --people read",
    ),
)
@click.argument("team", metavar="TEAM")
@click.option(
    "--keep-stored",
    is_flag=True,
    help="Still show what is stored until now. By default it is hidden, because anyone could have written it.",
)
@click.option(
    "--people",
    type=click.Choice([people.value for people in People]),
    help="Where members write with a session or a key of `turbo login`: into a scope of their own, or nowhere.",
)
@json_option
def protect(team: str, keep_stored: bool, people: str | None, as_json: bool) -> None:
    """Let only trusted credentials write what TEAM reads. Others write a scope of their own.

    Settings without an option stay unchanged.
    """
    from larder.teams.protection import ProtectionChange

    change = ProtectionChange(
        protected=True,
        people=None if people is None else People(people),
        keep_stored=keep_stored,
    )
    _set_protection(team, change, as_json=as_json)


@teams.command("unprotect", epilog=examples("larder teams unprotect acme"))
@click.argument("team", metavar="TEAM")
@json_option
def unprotect(team: str, as_json: bool) -> None:
    """End the protection of TEAM. Every member who can write then writes what everyone reads."""
    from larder.teams.protection import ProtectionChange

    _set_protection(team, ProtectionChange(protected=False), as_json=as_json)


def _set_protection(team: str, change: "ProtectionChange", *, as_json: bool) -> None:
    from larder.teams.protection import change_protection

    found = require_team(team)
    protection = change_protection(found.id, change, by=None)
    if bool(protection.on) != bool(found.state.protection.on):
        command = "larder teams protect" if protection.on else "larder teams unprotect"
        _notify_owners(found.slug, found.id, command, ended=not protection.on)
    record = {
        "team": found.slug,
        "protected": bool(protection.on),
        "trusted_from": protection.trusted_from if protection.on else None,
        "keep_stored": protection.keeps_stored,
        "people": protection.people.value,
        "overwrites": protection.overwrites.value,
        "unsigned": protection.unsigned.value,
    }
    print_record(record, as_json=as_json)
