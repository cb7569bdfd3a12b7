"""`larder users`: people."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from larder import clock
from larder.errors import EmailUnchanged, NotSignedIn, SoleTeamOwner, TryAgain
from larder_cli.commands import CommandGroup, examples, json_option
from larder_cli.failures import explanation
from larder_cli.output import Record, print_record, print_table
from larder_cli.owner_state import (
    StateChange,
    change_state,
    check_change,
    state_options,
    state_record,
    stored_record,
)
from larder_cli.visits import operator_visit

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


@contextmanager
def _told_when_they_are_gone(user: "User") -> Iterator[None]:
    """Their account may end while the command runs."""
    try:
        yield
    except NotSignedIn:
        raise click.ClickException(f"{user.email} is gone already: nothing was done") from None


@contextmanager
def _told_of_the_only_owner(user: "User") -> Iterator[None]:
    try:
        yield
    except SoleTeamOwner as error:
        team = error.slugs[0]
        raise click.ClickException(
            f"{user.email} is the only owner of {', '.join(error.slugs)}: make somebody else an owner of each first,"
            f" with `larder teams add-member {team} EMAIL --role OWNER`, or end it, with `larder teams delete {team}`"
        ) from None


@contextmanager
def _told_of_what_is_left(user: "User") -> Iterator[None]:
    """The user is deleted: that something else failed must not look as if they were not."""
    try:
        yield
    except Exception as error:
        why = _why(error)
        if why is None:
            raise
        raise _something_is_left(user, f" ({why})") from error


def _why(error: Exception) -> str | None:
    """Without the advice to run the command again, which would find nobody of the address."""
    return "AWS did not answer in time" if isinstance(error, TryAgain) else explanation(error)


def _something_is_left(user: "User", why: str = "") -> click.ClickException:
    return click.ClickException(
        f"{user.email} is deleted and their sessions are over, but keys or memberships may be left{why}: the hourly"
        f" ForgetDeletedUsers ends them; the user's id is {user.id}"
    )


@click.group(
    cls=CommandGroup,
    epilog=examples(
        'larder users create --email ada@acme.example --name "Ada"',
        "larder users list",
        "larder users set ada@acme.example --quota 5GB",
        "larder users delete ada@acme.example",
    ),
)
def users() -> None:
    """People, who own keys and join teams."""


@users.command(
    "create", epilog=examples('larder users create --email ada@acme.example --name "Ada Lovelace"')
)
@click.option(
    "--email", required=True, metavar="EMAIL", help="The email address. Only one user can have it."
)
@click.option("--name", required=True, help="The user's name, 1 to 100 characters.")
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


@users.command(
    "delete",
    epilog=examples(
        "larder users delete ada@acme.example", "larder users delete ada@acme.example --yes"
    ),
)
@click.argument("email", metavar="EMAIL")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@json_option
def delete(email: str, yes: bool, as_json: bool) -> None:
    """Delete the person EMAIL, with their sessions, keys and memberships.

    The same as their own `delete-user`, whether that is switched on or not. A team keeps an owner: who is its only one
    is not deleted.
    """
    from larder.accounts import credentials, service
    from larder.api_keys.service import delete_keys_of
    from larder.teams.service import leave_teams

    user = require_user(email)
    with _told_when_they_are_gone(user), _told_of_the_only_owner(user):
        credentials.check_teams_keep_an_owner(user.id)
        if not yes:
            click.confirm(
                f"Delete {user.email} ({user.id}), with their sessions, keys, memberships and what they store without"
                " a team?",
                abort=True,
                err=True,
            )
            # Somebody may have left while the question stood.
            credentials.check_teams_keep_an_owner(user.id)
        service.remove_user(user.id, now=clock.now())
    with _told_of_what_is_left(user):
        keys = delete_keys_of(user.id)
        if not leave_teams(user.id):
            raise _something_is_left(user)
    record = {"id": user.id, "email": user.email, "deleted": True, "keys_deleted": keys}
    print_record(record, as_json=as_json)
    if not as_json:
        click.echo(
            "\nThe user, sessions, keys and memberships are gone. What they stored without a team goes within the hour,"
            " its objects in the bucket an hour or two later. What they stored for a team stays the team's:"
            f" `larder artifacts delete TEAM --writer {user.id}` deletes it."
        )


@users.command("end-sessions", epilog=examples("larder users end-sessions ada@acme.example"))
@click.argument("email", metavar="EMAIL")
@json_option
def end_sessions(email: str, as_json: bool) -> None:
    """End all sessions of the person EMAIL at once.

    Links that change the address, and codes of `turbo login --sso-team` that were not exchanged yet, end with them.
    Password and API keys stay.
    """
    from larder.accounts import sessions

    user = require_user(email)
    with _told_when_they_are_gone(user):
        sessions.end_sessions(user.id)
    print_record({"id": user.id, "email": user.email, "sessions_ended": True}, as_json=as_json)
    if not as_json:
        click.echo(f"\nThe password stays, and so do keys: {_how_keys_end(user.email)}.")


@users.command(
    "change-email",
    epilog=examples("larder users change-email thief@evil.example ada@acme.example"),
)
@click.argument("email", metavar="EMAIL")
@click.argument("new", metavar="NEW")
@json_option
def change_email(email: str, new: str, as_json: bool) -> None:
    """Give the account of EMAIL to whoever has the address NEW.

    Sessions, the password and earlier links end: whoever reads the mail of NEW asks for a reset of the password, which
    verifies the address. API keys and memberships stay. EMAIL is told by mail.
    """
    from larder.accounts import credentials

    user, now = require_user(email), clock.now()
    with _told_when_they_are_gone(user):
        try:
            was, becomes = credentials.give_account(user.id, new, now=now)
        except EmailUnchanged:
            raise click.ClickException(
                f"they have the address {user.email} already: nothing was done."
                f" `larder users end-sessions {user.email}` ends their sessions"
            ) from None
    record = {
        "id": becomes.id,
        "email": becomes.email,
        "former_email": was.email,
        "email_verified": becomes.email_verified,
        "former_email_is_told": _tell_of_new_email(was, becomes, now),
    }
    print_record(record, as_json=as_json)
    if not as_json:
        click.echo(
            "\nSessions, the password and earlier links are void. Next, whoever reads the mail of"
            f" {becomes.email} asks for a reset of the password. Keys stay: {_how_keys_end(becomes.email)}."
        )


def _tell_of_new_email(was: "User", becomes: "User", now: datetime) -> bool:
    """The address is changed: that the news cannot be sent must not look as if it were not."""
    from larder.accounts import links

    visit = operator_visit("larder users change-email")
    try:
        return links.tell_of_new_email(was, becomes, visit, by_operator=True, now=now)
    except Exception as error:
        why = _why(error)
        if why is None:
            raise
        click.echo(f"Warning: {was.email} is not told of it: {why}", err=True)
        return False


def _how_keys_end(email: str) -> str:
    return f"`larder keys list --user {email}` names them, `larder keys revoke KEY_ID` ends one"


def _print_user(user: "User", *, as_json: bool) -> None:
    from larder.teams.repository import read_state

    print_record({**_record(user), **state_record(user.id, read_state(user.id))}, as_json=as_json)
