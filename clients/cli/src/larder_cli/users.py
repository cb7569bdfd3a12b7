"""`larder users`: user accounts."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from larder import clock
from larder.errors import EmailUnchanged, NotSignedIn, SoleTeamOwner, TryAgain
from larder_cli.commands import CommandGroup, examples, json_option, table_options
from larder_cli.failures import explanation
from larder_cli.mail_context import notify, operator_mail_context
from larder_cli.output import Record, echo, fields, print_record, print_table
from larder_cli.owner_state import (
    StateChange,
    agree_to_change,
    change_state,
    check_change,
    state_options,
    state_record,
    stored_record,
)
from larder_cli.receipt import holdings_record, print_with_receipt, rotate_known_option

if TYPE_CHECKING:
    from larder.accounts.models import User


def require_user(email: str) -> "User":
    """The user with this email address. Raises ClickException, which names the command that creates one."""
    from larder.accounts import service

    user = service.find_user_by_email(email)
    if user is None:
        raise click.ClickException(
            f"there is no user {email}: create one with `larder users create --email {email} --name ...`"
        )
    return user


unverified_option = click.option(
    "--unverified",
    is_flag=True,
    help="Accept a user who has not proven that the email address is theirs.",
)


def require_proven_user(email: str, *, instead: str, unverified: bool) -> "User":
    """The user with this address, unless someone else may have signed up with it. Raises ClickException.

    `instead` is what the operator can do, for the message. `unverified` accepts any user.
    """
    user = require_user(email)
    if not (user.proven or unverified):
        raise click.ClickException(
            f"{user.email} has not proven that the address is theirs, and someone else may have signed up with it:"
            f" {instead}, or give --unverified if you know the user"
        )
    return user


def _record(user: "User") -> Record:
    return {
        **fields(user, "id", "email", "name", "email_verified", "proven", "created_at"),
        "access_until_at": user.access_until,
        "suspended_at": user.suspended_at,
    }


@contextmanager
def _explain_deleted_user(user: "User") -> Iterator[None]:
    """The user may be deleted while the command runs."""
    try:
        yield
    except NotSignedIn:
        raise click.ClickException(
            f"{user.email} has already been deleted: nothing was changed"
        ) from None


@contextmanager
def _explain_only_owner(user: "User") -> Iterator[None]:
    try:
        yield
    except SoleTeamOwner as error:
        team = error.slugs[0]
        raise click.ClickException(
            f"{user.email} is the only owner of {', '.join(error.slugs)}: make another user an owner of each first,"
            f" with `larder teams add-member {team} EMAIL --role OWNER`, or delete the team, with"
            f" `larder teams delete {team}`"
        ) from None


@contextmanager
def _explain_partial_deletion(user: "User") -> Iterator[None]:
    """The user is already deleted, so the error must not suggest that the deletion failed."""
    try:
        yield
    except Exception as error:
        why = _why(error)
        if why is None:
            raise
        raise _partial_deletion(user, f" ({why})") from error


def _why(error: Exception) -> str | None:
    """The cause, without the advice to run the command again: the user no longer exists."""
    return "AWS did not answer in time" if isinstance(error, TryAgain) else explanation(error)


def _partial_deletion(user: "User", why: str = "") -> click.ClickException:
    return click.ClickException(
        f"{user.email} is deleted and their sessions have ended, but keys or memberships may remain{why}. The hourly"
        f" SweepDeletedUsers function deletes them. The user's id is {user.id}"
    )


@click.group(
    cls=CommandGroup,
    epilog=examples(
        'larder users create --email ada@acme.example --name "Ada"',
        "larder users list",
        "larder users set ada@acme.example --quota 5GB",
        "larder users suspend ada@acme.example",
        "larder users delete ada@acme.example",
    ),
)
def users() -> None:
    """Manage users, who own keys and join teams."""


@users.command(
    "create", epilog=examples('larder users create --email ada@acme.example --name "Ada Lovelace"')
)
@click.option(
    "--email", required=True, metavar="EMAIL", help="The email address. It must be unique."
)
@click.option("--name", required=True, help="The user's name, 1 to 100 characters.")
@json_option
def create(email: str, name: str, as_json: bool) -> None:
    """Create a user."""
    from larder.accounts import service

    # The operator vouches for the address.
    user = service.create_user(email, name, email_verified=True, now=clock.now())
    print_record(_record(user), as_json=as_json)


@users.command("list", epilog=examples("larder users list", "larder users list --json"))
@table_options
def list_(as_json: bool) -> None:
    """List all users, largest first. Shows how much each stores without a team."""
    from larder.accounts import service
    from larder.artifacts.repository.totals import read_totals_of

    found = service.list_users()
    stored = read_totals_of([user.id for user in found])
    fullest_first = sorted(found, key=lambda user: -stored[user.id].size_bytes)
    print_table(
        [{**_record(user), **stored_record(stored[user.id])} for user in fullest_first],
        (
            "email",
            "id",
            "proven",
            "created_at",
            "access_until_at",
            "suspended_at",
            "stored_bytes",
            "artifacts",
        ),
        empty="there are no users: create one with `larder users create`",
        as_json=as_json,
    )


@users.command("show", epilog=examples("larder users show ada@acme.example"))
@click.argument("email")
@json_option
def show(email: str, as_json: bool) -> None:
    """Show the user EMAIL, and what they hold and know.

    This includes their cache without a team, memberships, sessions, keys, the keys of teams that they know, and the
    rules that they added.
    """
    from larder.trust.holdings import holdings_of

    user = require_user(email)
    holdings = holdings_of(user, now=clock.now())
    record = {**_with_state(user), **holdings_record(holdings)}
    print_with_receipt(record, user.email, holdings.traces, as_json=as_json)


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
    """Change the caching, the block or the quota of EMAIL.

    The settings are for what the user does without a team. Settings without an option stay unchanged. Changes take
    effect at the user's next request. They do not affect the user's teams.
    """
    change = StateChange(**typed)
    check_change(change)
    user = require_user(email)
    agree_to_change(user.id, user.email, change)
    change_state(user.id, change)
    print_record(_with_state(user), as_json=as_json)


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
    """Delete the user EMAIL.

    Also deletes their sessions, keys and memberships. Works like the user's own `delete-user` request, even if that is
    disabled. Larder does not delete the only owner of a team.
    """
    from larder.accounts import service, sign_in
    from larder.addresses import canonical
    from larder.api_keys.keys import delete_keys_of
    from larder.sso.service import provider_of_address
    from larder.teams.members import leave_teams
    from larder.trust.makers import notify_of_user

    user = require_user(email)
    with _explain_deleted_user(user), _explain_only_owner(user):
        sign_in.check_teams_keep_an_owner(user.id)
        if not yes:
            click.confirm(
                f"Delete {user.email} ({user.id}), with their sessions, keys, memberships and what they store without"
                " a team?",
                abort=True,
                err=True,
            )
            # Another owner may have left while the question was open.
            sign_in.check_teams_keep_an_owner(user.id)
        service.delete_user(user.id, now=clock.now())
    with _explain_partial_deletion(user):
        context = operator_mail_context("larder users delete")
        notify("the teams", lambda: notify_of_user(user, context))
        keys = delete_keys_of(user.id)
        if not leave_teams(user.id):
            raise _partial_deletion(user)
    record = {"id": user.id, "email": user.email, "deleted": True, "keys_deleted": keys}
    print_record(record, as_json=as_json)
    if not as_json:
        echo(
            "",
            "The user, sessions, keys and memberships are deleted. Their artifacts without a team are deleted within"
            " the hour, and the objects in the bucket an hour or two later. Artifacts that they uploaded for a team"
            f" stay: `larder artifacts delete TEAM --writer {user.id}` deletes them.",
        )
        if provider := provider_of_address(canonical(user.email)):
            echo(
                f"If {user.email} signs in with {provider.name} again, they get a new, empty user. Remove them there,"
                " or suspend users instead of deleting them."
            )


@users.command("suspend", epilog=examples("larder users suspend ada@acme.example"))
@click.argument("email", metavar="EMAIL")
@rotate_known_option
@json_option
def suspend(email: str, rotate_known: bool, as_json: bool) -> None:
    """End the access of the user EMAIL at once, until `resume`.

    From the next request on, their sessions, keys and login codes are refused, and they cannot sign in, with a password
    or with their company. Nothing is deleted. Keys of teams and CI jobs go on. Lists the keys of teams that the user
    knows and the rules that they added, and mails them to the owners. A key that can do more than read and write and
    that the user has made ends 14 days later, unless an owner or admin rotates it.
    """
    from larder.accounts.access import suspend_user
    from larder.accounts.sessions import list_sessions
    from larder.api_keys.keys import list_keys
    from larder.teams.members import note_access_changed
    from larder.trust.makers import notify_of_user, traces_of

    user, now = require_user(email), clock.now()
    ended = {
        "sessions_ended": len(list_sessions(user, now=now)),
        "keys_ended": [key.id for key in list_keys(user.id)],
    }
    with _explain_deleted_user(user):
        suspended = suspend_user(user.id, now=now)
    note_access_changed(user.id)
    traces = traces_of(user, now=now)
    context = operator_mail_context("larder users suspend")
    notify("the teams", lambda: notify_of_user(user, context))
    record = {**_access_record(suspended), **ended}
    print_with_receipt(record, user.email, traces, rotates=rotate_known, as_json=as_json)


@users.command("resume", epilog=examples("larder users resume ada@acme.example"))
@click.argument("email", metavar="EMAIL")
@json_option
def resume(email: str, as_json: bool) -> None:
    """Undo `suspend` for the user EMAIL.

    Sessions and keys that have not expired work again. If no company manages the user any more, an end of their access
    is removed too.
    """
    from larder.accounts.access import resume_user
    from larder.teams.members import note_access_changed

    user = require_user(email)
    with _explain_deleted_user(user):
        resumed = resume_user(user.id)
    note_access_changed(user.id)
    print_record(_access_record(resumed), as_json=as_json)
    if not as_json and not resumed.has_access(clock.now()):
        echo("", f"{resumed.email} has access again after the next sign-in with their company.")


def _access_record(user: "User") -> Record:
    return {
        **fields(user, "id", "email"),
        "access_until_at": user.access_until,
        "suspended_at": user.suspended_at,
    }


@users.command("end-sessions", epilog=examples("larder users end-sessions ada@acme.example"))
@click.argument("email", metavar="EMAIL")
@json_option
def end_sessions(email: str, as_json: bool) -> None:
    """End all sessions of the user EMAIL at once.

    Links that change the address, and codes of `turbo login --sso-team` that were not exchanged yet, also stop
    working. The password and API keys stay valid.
    """
    from larder.accounts import sessions

    user = require_user(email)
    with _explain_deleted_user(user):
        sessions.revoke_sessions(user.id)
    print_record({"id": user.id, "email": user.email, "sessions_ended": True}, as_json=as_json)
    if not as_json:
        echo("", f"The password and API keys stay valid. {_how_to_revoke_keys(user.email)}")


@users.command(
    "change-email",
    epilog=examples("larder users change-email thief@evil.example ada@acme.example"),
)
@click.argument("email", metavar="EMAIL")
@click.argument("new", metavar="NEW")
@json_option
def change_email(email: str, new: str, as_json: bool) -> None:
    """Change the address of the account EMAIL to NEW.

    This ends all other access to the account: sessions, the password and earlier links stop working. The owner of NEW
    requests a password reset, which verifies the address. API keys and memberships stay. Larder notifies EMAIL by mail.
    """
    from larder.accounts import sign_in

    user, now = require_user(email), clock.now()
    with _explain_deleted_user(user):
        try:
            was, becomes = sign_in.give_account(user.id, new, now=now)
        except EmailUnchanged:
            raise click.ClickException(
                f"the user already has the address {user.email}: nothing was changed."
                f" `larder users end-sessions {user.email}` ends their sessions"
            ) from None
    record = {
        "id": becomes.id,
        "email": becomes.email,
        "former_email": was.email,
        "email_verified": becomes.email_verified,
        "former_email_notified": _notify_of_new_email(was, becomes, now),
    }
    print_record(record, as_json=as_json)
    if not as_json:
        echo(
            "",
            "Sessions, the password and earlier links no longer work. Next, the owner of"
            f" {becomes.email} must request a password reset. API keys stay valid."
            f" {_how_to_revoke_keys(becomes.email)}",
        )


def _notify_of_new_email(was: "User", becomes: "User", now: datetime) -> bool:
    """Whether the previous address was notified. A failure only warns, because the address is already changed."""
    from larder.accounts import email_links

    mail_context = operator_mail_context("larder users change-email")
    try:
        return email_links.notify_previous_address(
            was, becomes, mail_context, by_operator=True, now=now
        )
    except Exception as error:
        why = _why(error)
        if why is None:
            raise
        echo(f"Warning: could not notify {was.email}: {why}", err=True)
        return False


def _how_to_revoke_keys(email: str) -> str:
    return f"`larder keys list --user {email}` lists them, `larder keys revoke KEY_ID` revokes one."


def _with_state(user: "User") -> Record:
    from larder.teams.state import read_state

    return {**_record(user), **state_record(user.id, read_state(user.id))}
