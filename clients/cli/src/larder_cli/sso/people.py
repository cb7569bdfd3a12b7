"""The people of a provider: who has to sign in with it, and until when they have access."""

from collections.abc import Collection
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import click

from larder import clock
from larder_cli.commands import TargetCommand, examples, json_option, table_options
from larder_cli.mail_context import notify, operator_mail_context
from larder_cli.output import Record, echo, print_json, print_record, print_table
from larder_cli.receipt import print_with_receipt, rotate_known_option

if TYPE_CHECKING:
    from larder.accounts.access import Person
    from larder.accounts.models import User
    from larder.sso.models import IdentityProvider


def settle(
    provider: "IdentityProvider", *, former: Collection[str] = (), quiet: bool
) -> "list[User]":
    """Give the people the access that the mode means, and say how many have changed."""
    from larder.accounts.access import settle_access

    changed = settle_access(provider, former_domains=former, now=clock.now())
    if not quiet and changed:
        echo(
            "",
            f"The access of {_people(len(changed))} has changed: `larder users list` shows until when it lasts.",
        )
    return changed


@click.command(
    "require",
    cls=TargetCommand,
    epilog=examples(
        "larder sso require acme --except root@acme.com",
        "larder sso require acme --keys-days 14 --yes",
        "larder sso require acme --no-exceptions",
    ),
)
@click.argument("id", metavar="ID")
@click.option(
    "--except",
    "exceptions",
    multiple=True,
    metavar="EMAIL",
    help="An address that keeps its password, in case the provider fails. Replaces those of before. Up to five.",
)
@click.option("--no-exceptions", is_flag=True, help="Let no address keep its password.")
@click.option(
    "--keys-days",
    type=click.IntRange(1, 90),
    metavar="DAYS",
    help="How long keys work after the last sign-in. By default, what was set before: 30.",
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@json_option
def require(
    id: str,
    exceptions: tuple[str, ...],
    no_exceptions: bool,
    keys_days: int | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Let the people of the provider ID sign in with it only.

    Lists who has never signed in with it, and who is linked to it with an address of another domain, and asks. Their
    passwords then stop working. The sessions of all of them end within hours, and their access some days after the last
    sign-in with the provider. Who has not signed in yet gets
    these days from now on. You can run it again: it gives nobody more time. `larder sso optional` undoes it.
    """
    from larder.accounts.access import people_of
    from larder.addresses import canonical
    from larder.sso import service
    from larder.sso.models import Mode

    if exceptions and no_exceptions:
        raise click.UsageError("--except and --no-exceptions exclude each other")
    kept = (
        None
        if not (exceptions or no_exceptions)
        else tuple(dict.fromkeys(map(canonical, exceptions)))
    )

    def required(old: "IdentityProvider") -> "IdentityProvider":
        return replace(
            old,
            mode=Mode.REQUIRED,
            exceptions=old.exceptions if kept is None else kept,
            keys_days=keys_days or old.keys_days,
        )

    planned = required(service.require_provider(id))
    if not planned.domains:
        raise click.ClickException(
            f"{id} has no domain: name one with `larder sso set {id} --add-domain DOMAIN`"
        )
    service.check_provider(planned)
    managed = [one for one in people_of(planned) if one.is_managed]
    missing = [one for one in managed if not one.is_linked]
    others = [one.user.email for one in managed if one.has_other]
    if not yes:
        _show_missing(planned, missing)
        for email in others:
            echo(f"{email} signs in with {planned.name}, and has another address", err=True)
        click.confirm(_question(planned), abort=True, err=True)
    _, new = service.change_provider(id, required, now=clock.now())
    changed = settle(new, quiet=as_json)
    people = {"not_signed_in": [one.user.email for one in missing], "other_addresses": others}
    _print_mode(new, changed, as_json=as_json, **people)


def _show_missing(provider: "IdentityProvider", missing: "list[Person]") -> None:
    if provider.last_sign_in_at is None:
        echo(
            f"Warning: nobody has signed in with {provider.name} yet. Sign in once yourself before you require it",
            err=True,
        )
    for one in missing:
        echo(f"{one.user.email} has never signed in with {provider.name}", err=True)


def _question(provider: "IdentityProvider") -> str:
    domains = ", ".join(provider.domains)
    kept = f", except for {', '.join(provider.exceptions)}" if provider.exceptions else ""
    return (
        f"Turn passwords off for {domains}{kept}, and end sessions and keys {provider.keys_days} days after the last"
        f" sign-in with {provider.name}?"
    )


@click.command("optional", cls=TargetCommand, epilog=examples("larder sso optional acme"))
@click.argument("id", metavar="ID")
@json_option
def optional(id: str, as_json: bool) -> None:
    """Let people of the domains use passwords again.

    Their sessions and keys no longer end by themselves. Access that has ended already stays ended, because people may
    have left: `larder users resume EMAIL` lets one in again. This needs AWS credentials, and not the provider.
    """
    from larder.accounts.access import people_of
    from larder.sso import service
    from larder.sso.models import Mode

    _, new = service.change_provider(
        id, lambda old: replace(old, mode=Mode.OPTIONAL), now=clock.now()
    )
    changed = settle(new, quiet=as_json)
    now = clock.now()
    ended = [one.user.email for one in people_of(new) if not one.user.has_access(now)]
    _print_mode(new, changed, without_access=ended, as_json=as_json)


def _print_mode(
    provider: "IdentityProvider", changed: "list[User]", *, as_json: bool, **people: list[str]
) -> None:
    record: Record = {
        "id": provider.id,
        "mode": provider.mode.value,
        "domains": list(provider.domains),
        "exceptions": list(provider.exceptions),
        "keys_days": provider.keys_days,
        "changed": [user.email for user in changed],
        **people,
    }
    if as_json:
        print_json(record)
        return
    shown = {**record, "changed": len(changed)}
    shown |= {name: emails or None for name, emails in people.items()}
    print_record(shown, as_json=False)


@click.command(
    "extend",
    cls=TargetCommand,
    epilog=examples(
        "larder sso extend acme --days 3", "larder sso extend acme --days 7 --user ada@acme.com"
    ),
)
@click.argument("id", metavar="ID")
@click.option(
    "--days",
    type=click.IntRange(1, 90),
    required=True,
    metavar="DAYS",
    help="For how many days from now people keep their access at least.",
)
@click.option(
    "--user",
    "emails",
    multiple=True,
    metavar="EMAIL",
    help="Only this user, even if their access has ended. Repeatable.",
)
@table_options
def extend(id: str, days: int, emails: tuple[str, ...], as_json: bool) -> None:
    """Give the people of the provider ID more time.

    Use it while the provider does not work. Without --user, it is for everyone whose access has not ended, so that
    people who left stay out.
    """
    from larder.accounts.access import extend_access
    from larder.accounts.service import managing_provider
    from larder.sso.service import require_provider
    from larder_cli.users import require_user

    provider = require_provider(id)
    users = [require_user(email) for email in emails]
    for user in users:
        managing = managing_provider(user)
        if managing is None or managing.id != id:
            raise click.ClickException(f"{user.email} does not have to sign in with {id}")
    changed = extend_access(provider, days, only=[one.id for one in users], now=clock.now())
    print_table(
        [{"email": one.email, "access_until_at": one.access_until} for one in changed],
        ("email", "access_until_at"),
        empty="everyone has access for longer already",
        as_json=as_json,
    )


@click.command(
    "unlink", cls=TargetCommand, epilog=examples("larder sso unlink acme ada@acme.example")
)
@click.argument("id", metavar="ID")
@click.argument("email", metavar="EMAIL")
@rotate_known_option
@json_option
def unlink(id: str, email: str, rotate_known: bool, as_json: bool) -> None:
    """Unlink the user EMAIL from the provider ID.

    Use it if a new employee gets the address of a former one: until then, Larder refuses the new person, because the
    user belongs to the former one. Ends the sessions that were started with the provider, and the memberships that it
    gave. Other memberships and keys stay: revoke those that the new person must not have, or delete the user instead.
    """
    from larder.accounts.linking import unlink_for_operator
    from larder.api_keys.keys import delete_keys_of_member
    from larder.trust.makers import notify_of_member, traces_in, traces_of
    from larder_cli.users import require_user

    user, now = require_user(email), clock.now()
    left = unlink_for_operator(user.id, id, now=now)
    if left is None:
        raise click.ClickException(f"{user.email} has no account of {id}: `larder sso show {id}`")
    traces = [*(traces_in(team_id, user, now=now) for team_id in left)]
    context = operator_mail_context("larder sso unlink")
    for team_id in left:
        notify(team_id, partial(notify_of_member, team_id, user.id, context))
        delete_keys_of_member(team_id, user.id)
    traces += traces_of(user, now=now)
    record = {"id": id, "email": user.email, "unlinked": True, "teams_left": left}
    print_with_receipt(record, user.email, traces, rotates=rotate_known, as_json=as_json)


@click.command(
    "remove",
    cls=TargetCommand,
    epilog=examples("larder sso remove acme", "larder sso remove acme --yes"),
)
@click.argument("id", metavar="ID")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@json_option
def remove(id: str, yes: bool, as_json: bool) -> None:
    """Remove the provider ID.

    Lists who has no other way to sign in, and asks. Ends sign-ins in progress and the sessions that were started with
    it, and frees its domains. Users and their keys stay. A reset link gives a user a password. If the command was
    interrupted, run it again.
    """
    from larder.accounts.access import end_sessions_of, people_of
    from larder.sso import service
    from larder.sso.memberships import release
    from larder.sso.models import Mode

    provider = service.find_provider(id)
    if provider is None:
        # It may have been interrupted before this.
        released, ended = release(id), end_sessions_of(id)
        if not released and not ended:
            service.require_provider(id)
        print_record({"id": id, "removed": True, "sessions_ended": ended}, as_json=as_json)
        return
    if not yes:
        for one in people_of(provider):
            if one.is_linked and not one.has_password:
                echo(
                    f"{one.user.email} has no password, and needs a reset link to sign in", err=True
                )
        click.confirm(f"Remove {provider.name} ({id})?", abort=True, err=True)
    # Nobody is managed while the sessions end.
    _, freed = service.change_provider(
        id, lambda old: replace(old, mode=Mode.OPTIONAL), now=clock.now()
    )
    settle(freed, quiet=as_json)
    service.remove_provider(id)
    ended = end_sessions_of(id)
    print_record({"id": id, "removed": True, "sessions_ended": ended}, as_json=as_json)


def _people(number: int) -> str:
    return "1 person" if number == 1 else f"{number} people"
