"""`larder users`: people."""

from typing import TYPE_CHECKING, Any

import click

from larder import clock
from larder_cli.commands import CommandGroup, examples, json_option
from larder_cli.output import Record, print_record, print_table
from larder_cli.owner_state import (
    StateChange,
    change_state,
    check_change,
    state_options,
    state_record,
    stored_record,
)

if TYPE_CHECKING:
    from larder.accounts.models import User


def require_user(email: str) -> "User":
    """The user with this address. Raises ClickException with the command that makes one."""
    from larder.accounts import service

    user = service.find_user_by_email(email)
    if user is None:
        raise click.ClickException(
            f"there is no user {email}: make one with `larder users create --email {email} --name ...`"
        )
    return user


def _record(user: "User") -> Record:
    return {
        "id": user.id,
        "email": user.email,
        "name": user.name,
        "email_verified": user.email_verified,
        "created_at": user.created_at,
    }


@click.group(
    cls=CommandGroup,
    epilog=examples(
        'larder users create --email ada@acme.example --name "Ada"',
        "larder users list",
        "larder users set ada@acme.example --quota 5GB",
    ),
)
def users() -> None:
    """People, who own keys and join teams."""


@users.command(
    "create", epilog=examples('larder users create --email ada@acme.example --name "Ada Lovelace"')
)
@click.option("--email", required=True, metavar="EMAIL", help="Their address; one user has it.")
@click.option("--name", required=True, help="Their name, 1 to 100 characters.")
@json_option
def create(email: str, name: str, as_json: bool) -> None:
    """Add a person."""
    from larder.accounts import service

    # The operator vouches for the address.
    user = service.create_user(email, name, email_verified=True, now=clock.now())
    print_record(_record(user), as_json=as_json)


@users.command("list", epilog=examples("larder users list", "larder users list --json"))
@json_option
def list_(as_json: bool) -> None:
    """List every person, with what they store without a team: who stores most comes first."""
    from larder.accounts import service
    from larder.artifacts.repository.totals import read_totals_of

    found = service.list_users()
    stored = read_totals_of([user.id for user in found])
    fullest_first = sorted(found, key=lambda user: -stored[user.id].size_bytes)
    print_table(
        [{**_record(user), **stored_record(stored[user.id])} for user in fullest_first],
        ("email", "id", "email_verified", "created_at", "stored_bytes", "artifacts"),
        empty="there are no users: make one with `larder users create`",
        as_json=as_json,
    )


@users.command("show", epilog=examples("larder users show ada@acme.example"))
@click.argument("email")
@json_option
def show(email: str, as_json: bool) -> None:
    """Show the person with the address EMAIL, and the cache that they use without a team."""
    _print_user(require_user(email), as_json=as_json)


@users.command(
    "set",
    epilog=examples(
        "larder users set ada@acme.example --quota 5GB",
        'larder users set ada@acme.example --block soft_block --reason "ask the platform team"',
        "larder users set ada@acme.example --unblock",
    ),
)
@click.argument("email", metavar="EMAIL")
@state_options
@json_option
def set_(email: str, as_json: bool, **typed: Any) -> None:
    """Change what the person EMAIL may do without a team; what is not named stays.

    Takes effect at their next request. Their teams are not touched.
    """
    change = StateChange(**typed)
    check_change(change)
    user = require_user(email)
    change_state(user.id, change)
    _print_user(user, as_json=as_json)


def _print_user(user: "User", *, as_json: bool) -> None:
    from larder.teams.repository import read_state

    print_record({**_record(user), **state_record(user.id, read_state(user.id))}, as_json=as_json)
