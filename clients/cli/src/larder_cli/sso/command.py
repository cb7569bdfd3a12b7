"""`larder sso`: the identity providers of companies."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from larder import clock
from larder.settings import settings
from larder_cli.commands import CommandGroup, examples, json_option, table_options
from larder_cli.output import Record, echo, fields, print_json, print_record, print_table
from larder_cli.sso import groups, people
from larder_cli.sso import settings as given_settings
from larder_cli.sso.settings import (
    check_client_id,
    claims_of_issuer,
    common_options,
    given,
    read_secret,
    redirect_uri,
    secret_option,
    warn,
    warn_of_hosts,
)

if TYPE_CHECKING:
    from larder.sso.models import IdentityProvider

_MOST_SKEW = timedelta(seconds=90)
_CHANGES_SHOWN = 10
_DOMAINS = "A domain of email addresses, in its ASCII form, such as acme.com. Repeatable."


def _record(provider: "IdentityProvider") -> Record:
    return {
        **fields(provider, "id", "name", "issuer", "client_id"),
        "redirect_uri": redirect_uri(provider.id),
        **fields(provider, "mode", "domains", "exceptions", "verified_by", "scopes"),
        **fields(provider, "email_claim", "groups_claim", "required_claims", "hidden", "signs_up"),
        **fields(provider, "sends_auth_time", "session_hours", "keys_days"),
        "former_secret_until": provider.former_until,
        **fields(provider, "version", "created_at", "last_sign_in_at", "last_failure"),
        **given_settings.addresses(provider.endpoints),
    }


def _print(provider: "IdentityProvider", *, as_json: bool, **more: object) -> None:
    print_record({**_record(provider), **more}, as_json=as_json)


@click.group(
    cls=CommandGroup,
    epilog=examples(
        "larder sso add acme --name Acme --issuer https://acme.okta.com --client-id 0oa1b2c3 --domain acme.com",
        "larder sso test acme",
        "larder sso require acme --except root@acme.com",
        "larder users suspend ada@acme.com",
    ),
)
def sso() -> None:
    """Let people sign in with their company.

    A provider is an OpenID provider, such as Okta, Entra ID, Google Workspace or Keycloak. It has domains of email
    addresses. While it is optional, their people can also use passwords. Once you require it, they have to sign in with
    it, and their sessions and keys end some days after the last time: people who leave lose access by themselves.
    """


@sso.command(
    "add",
    epilog=examples(
        "larder sso add acme --name Acme --issuer https://acme.okta.com --client-id 0oa1b2c3 --domain acme.com",
        "larder sso add google --name Google --issuer https://accounts.google.com --client-id 12.apps.example"
        " --domain acme.com --client-secret-file secret.txt",
    ),
)
@click.argument("id", metavar="ID")
@click.option("--name", required=True, help="The name on the button, such as Acme.")
@click.option(
    "--issuer", required=True, metavar="URL", help="The issuer, exactly as tokens name it."
)
@click.option("--client-id", required=True, metavar="TEXT", help="The id of the client there.")
@secret_option
@click.option("--domain", "domains", multiple=True, metavar="DOMAIN", help=_DOMAINS)
@common_options
@click.option("--groups-claim", metavar="NAME", help="The claim with the groups of a person.")
@click.option(
    "--email-claim",
    metavar="NAME",
    help="The claim with the address, in place of email. Needs --verified-by domain to prove it.",
)
@click.option(
    "--hidden", is_flag=True, help="Show no button. People are led here by their address."
)
@click.option("--no-sign-up", is_flag=True, help="Only people who already have a user sign in.")
@click.option(
    "--no-auth-time",
    is_flag=True,
    help="The provider does not send auth_time. By default, only Google does not.",
)
@json_option
def add(
    id: str,
    name: str,
    issuer: str,
    client_id: str,
    secret_file: Any,
    domains: tuple[str, ...],
    groups_claim: str | None,
    email_claim: str | None,
    hidden: bool,
    no_sign_up: bool,
    no_auth_time: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Add the provider ID: 1 to 32 of a-z, 0-9 and -.

    Reads its configuration once, pins the addresses that this names, and prints the redirect URI that the provider has
    to allow. The client secret comes from a file or a question, and is stored encrypted. The new provider is optional.
    """
    from larder.issuers.urls import parse_provider_issuer
    from larder.sso import service
    from larder.sso.discovery import GOOGLE
    from larder.sso.models import IdentityProvider
    from larder_cli.sso.reading import read_endpoints

    now, origin = clock.now(), settings().base_url
    domains = tuple(domain.lower() for domain in domains)
    parse_provider_issuer(issuer, origin=origin)
    check_client_id(client_id)
    values = given(**options)
    own = values.get("required_claims", {})
    values["required_claims"] = {**claims_of_issuer(issuer, domains), **own}
    endpoints, _ = read_endpoints(issuer, origin=origin)
    provider = IdentityProvider(
        id=id,
        name=name,
        issuer=issuer,
        client_id=client_id,
        origin=origin,
        secret=None,
        endpoints=endpoints,
        domains=domains,
        groups_claim=groups_claim,
        email_claim=email_claim,
        hidden=hidden,
        signs_up=not no_sign_up,
        sends_auth_time=not no_auth_time and issuer != GOOGLE,
        created_at=now,
        updated_at=now,
        **values,
    )
    service.check_provider(provider)
    added = service.add_provider(provider, read_secret(secret_file))
    warn(added)
    warn_of_hosts(added.endpoints)
    _print(added, as_json=as_json)
    if not as_json:
        echo(
            "",
            f"Allow the redirect URI {redirect_uri(id)} at the provider, and then run `larder sso test {id}`.",
        )


@sso.command("list", epilog=examples("larder sso list", "larder sso list --json"))
@table_options
def list_(as_json: bool) -> None:
    """List the providers."""
    from larder.sso.service import list_providers

    found = list_providers()
    for provider in found:
        warn(provider)
    print_table(
        [_record(one) for one in found],
        (
            "id",
            "name",
            "mode",
            "domains",
            "exceptions",
            "issuer",
            "last_sign_in_at",
            "last_failure",
        ),
        empty="there are no providers: add one with `larder sso add`",
        as_json=as_json,
    )


@sso.command("show", epilog=examples("larder sso show acme"))
@click.argument("id", metavar="ID")
@table_options
def show(id: str, as_json: bool) -> None:
    """Show the provider ID, and who has not signed in with it.

    Also shows the roles that it gives in teams, and its last changes. Reads all users.
    """
    from larder.accounts.access import people_of
    from larder.audit.service import read_entries
    from larder.sso.service import require_provider

    provider = require_provider(id)
    found = people_of(provider)
    missing = [one.user.email for one in found if not one.is_linked]
    others = [one.user.email for one in found if one.has_other]
    entries = read_entries(f"sso#{id}", limit=_CHANGES_SHOWN, now=clock.now()).entries
    changes: list[Record] = [{"at": entry.at, "action": entry.action.value} for entry in entries]
    counts = {"people": len(found), "signed_in": len(found) - len(missing)}
    if as_json:
        more = {"teams": groups.mappings_of(id), "not_signed_in": missing}
        more |= {"other_addresses": others, "changes": changes}
        print_json({**_record(provider), **counts, **more})
        return
    _print(provider, as_json=False, **counts)
    echo(*(groups.described(one) for one in groups.mappings_of(id)))
    echo("", *(f"{email} has not signed in with {provider.name} yet" for email in missing))
    echo(*(f"{email} signs in with {provider.name}, and has another address" for email in others))
    print_table(changes, ("at", "action"), empty="there are no changes", as_json=False)


@sso.command(
    "set",
    epilog=examples(
        "larder sso set acme --add-domain acme.net",
        "larder sso set acme --verified-by domain --hidden",
        "larder sso set acme --session-hours 12 --keys-days 14",
    ),
)
@click.argument("id", metavar="ID")
@click.option("--name", help="The name on the button.")
@click.option("--client-id", metavar="TEXT", help="The id of another client there.")
@click.option("--add-domain", multiple=True, metavar="DOMAIN", help=_DOMAINS)
@click.option("--remove-domain", multiple=True, metavar="DOMAIN", help=_DOMAINS)
@common_options
@click.option("--drop-claim", multiple=True, metavar="NAME", help="Do not require this claim.")
@click.option("--groups-claim", metavar="NAME", help="The claim with the groups. Empty for none.")
@click.option(
    "--email-claim",
    metavar="NAME",
    help="The claim with the address, in place of email. Empty for email.",
)
@click.option("--hidden/--shown", default=None, help="Whether the sign-in page has no button.")
@click.option(
    "--sign-up/--no-sign-up", "signs_up", default=None, help="Whether new people get a user."
)
@click.option(
    "--auth-time/--no-auth-time",
    "sends_auth_time",
    default=None,
    help="Whether the provider sends the time of the login.",
)
@json_option
def set_(
    id: str,
    add_domain: tuple[str, ...],
    remove_domain: tuple[str, ...],
    drop_claim: tuple[str, ...],
    email_claim: str | None,
    groups_claim: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Change settings of the provider ID.

    Settings without an option stay as they are. The issuer never changes: remove the provider and add another. A change
    that affects trust ends sign-ins in progress.
    """
    from larder.sso import service

    if options["client_id"] is not None:
        check_client_id(options["client_id"])
    values = given(**options)
    claims = values.pop("required_claims", {})
    if email_claim is not None:
        values["email_claim"] = email_claim or None
    if groups_claim is not None:
        values["groups_claim"] = groups_claim or None
    if not (values or claims or add_domain or remove_domain or drop_claim):
        raise click.UsageError("name at least one setting to change")

    def changed(old: "IdentityProvider") -> "IdentityProvider":
        kept = [domain for domain in old.domains if domain not in remove_domain]
        added = [one.lower() for one in add_domain if one.lower() not in kept]
        domains = (*kept, *added)
        required = {**_claims_of(old, domains), **claims}
        return replace(
            old,
            domains=domains,
            exceptions=tuple(
                exception for exception in old.exceptions if exception.rpartition("@")[2] in domains
            ),
            required_claims={
                name: texts for name, texts in required.items() if name not in drop_claim
            },
            **values,
        )

    old, new = service.change_provider(id, changed, now=clock.now())
    warn(new)
    _print(new, as_json=as_json)
    if add_domain or remove_domain:
        # Also if the domains have not changed: an earlier run may have been interrupted here.
        people.settle(new, former=(*old.domains, *remove_domain), quiet=as_json)


def _claims_of(old: "IdentityProvider", domains: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """The required claims after a change of the domains, which those that `add` has set follow."""
    required = {**old.required_claims}
    for name, values in claims_of_issuer(old.issuer, old.domains).items():
        if required.get(name) == values:
            required |= claims_of_issuer(old.issuer, domains)
    return required


@sso.command(
    "rotate-secret",
    epilog=examples(
        "larder sso rotate-secret acme", "larder sso rotate-secret acme --client-secret-file -"
    ),
)
@click.argument("id", metavar="ID")
@secret_option
@json_option
def rotate_secret(id: str, secret_file: Any, as_json: bool) -> None:
    """Replace the client secret of the provider ID.

    For 24 hours, the former one is tried if the provider refuses the new one. So you can store it here first.
    """
    from larder.sso import service

    service.require_provider(id)
    rotated = service.rotate_secret(id, read_secret(secret_file), now=clock.now())
    record = {"id": id, "former_secret_until": rotated.former_until}
    print_record(record, as_json=as_json)


@sso.command("refresh", epilog=examples("larder sso refresh acme", "larder sso refresh acme --yes"))
@click.argument("id", metavar="ID")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@json_option
def refresh(id: str, yes: bool, as_json: bool) -> None:
    """Read the configuration of the provider ID again.

    Shows what has changed, and asks before it counts.
    """
    from larder.sso import service
    from larder_cli.sso.reading import read_endpoints

    provider, origin = service.require_provider(id), settings().base_url
    endpoints, _ = read_endpoints(provider.issuer, origin=origin)
    differences = _differences(provider, given_settings.addresses(endpoints))
    if not differences:
        print_record({"id": id, "changed": False}, as_json=as_json)
        return
    if not yes:
        echo(*differences, err=True)
        click.confirm(
            "Pin the new configuration? This ends sign-ins in progress", abort=True, err=True
        )
    _, new = service.change_provider(
        id, lambda old: replace(old, endpoints=endpoints, origin=origin), now=clock.now()
    )
    warn_of_hosts(new.endpoints)
    print_record(
        {"id": id, "changed": True, **given_settings.addresses(endpoints)}, as_json=as_json
    )


def _differences(provider: "IdentityProvider", now: Record) -> list[str]:
    pinned = {**given_settings.addresses(provider.endpoints), "redirect_to": provider.origin}
    found = {**now, "redirect_to": settings().base_url}
    return [
        f"{name}: {pinned[name]} is now {found[name]}"
        for name in pinned
        if pinned[name] != found[name]
    ]


@sso.command("test", epilog=examples("larder sso test acme", "larder sso test acme --json"))
@click.argument("id", metavar="ID")
@table_options
def test(id: str, as_json: bool) -> None:
    """Test the provider ID from this computer. The status is 1 if a check fails.

    Checks that the configuration has not changed, that there are keys, that the clocks agree, and that the provider
    knows the client id and secret. It cannot check the redirect URI: sign in once for that.
    """
    from larder.sso.service import require_provider

    provider = require_provider(id)
    results = [_checked(provider, *check) for check in _CHECKS]
    print_table(results, ("check", "ok", "detail"), empty="", as_json=as_json)
    warn_of_hosts(provider.endpoints)
    if not all(result["ok"] for result in results):
        raise click.exceptions.Exit(1)


def _checked(
    provider: "IdentityProvider", name: str, check: Callable[["IdentityProvider"], Sequence[str]]
) -> Record:
    from larder.errors import InvalidValue

    try:
        problems = check(provider)
    except click.ClickException as error:
        problems = [error.message]
    except InvalidValue as error:
        problems = [str(error)]
    return {"check": name, "ok": not problems, "detail": "; ".join(problems) or None}


def _check_configuration(provider: "IdentityProvider") -> list[str]:
    from larder_cli.sso.reading import read_endpoints

    endpoints, _ = read_endpoints(provider.issuer, origin=settings().base_url)
    differences = _differences(provider, given_settings.addresses(endpoints))
    return [*differences, f"`larder sso refresh {provider.id}` pins it"] if differences else []


def _check_keys(provider: "IdentityProvider") -> list[str]:
    from larder_cli.sso.reading import read_document, usable_keys

    document = read_document(provider.endpoints.jwks)
    if usable_keys(document.json.get("keys"), provider.endpoints.algorithms):
        return []
    return [f"{provider.endpoints.jwks} has no key for {', '.join(provider.endpoints.algorithms)}"]


def _check_clock(provider: "IdentityProvider") -> list[str]:
    from larder_cli.sso.reading import read_document

    at = read_document(provider.endpoints.jwks).at
    if at is None or abs(clock.now() - at) <= _MOST_SKEW:
        return []
    seconds = round((at - clock.now()).total_seconds())
    return [f"its clock differs from this computer's by {seconds} s: tokens may be refused"]


def _check_client(provider: "IdentityProvider") -> list[str]:
    from larder.sso.service import unsealed_secrets
    from larder_cli.sso.reading import error_of_token_endpoint

    secrets = unsealed_secrets(provider, now=clock.now())
    again = f"store the secret again with `larder sso rotate-secret {provider.id}`"
    if provider.secret is not None and not secrets:
        return [f"the stored secret cannot be decrypted: {again}"]
    secret = secrets[0] if secrets else None
    error = error_of_token_endpoint(provider, secret, redirect_uri(provider.id))
    match error:
        case "invalid_grant":
            return []
        case "invalid_client" | "unauthorized_client":
            return [f"{error}: the client id or the secret is wrong; {again}"]
    return [f"the token endpoint replied with {error}, not invalid_grant: check the client there"]


_CHECKS = (
    ("configuration", _check_configuration),
    ("keys", _check_keys),
    ("clock", _check_clock),
    ("client", _check_client),
)


for command in (
    people.require,
    people.optional,
    people.extend,
    people.unlink,
    people.remove,
    groups.map_group,
    groups.unmap_group,
):
    sso.add_command(command)
