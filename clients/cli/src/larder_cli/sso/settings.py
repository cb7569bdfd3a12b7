"""The options of `larder sso add` and `set`, and the client secret."""

from typing import TYPE_CHECKING, Any

import click

from larder.settings import listed, settings
from larder_cli.output import Record, echo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from larder.sso.models import Endpoints, IdentityProvider

secret_option = click.option(
    "--client-secret-file",
    "secret_file",
    type=click.File(),
    metavar="FILE",
    help="A file with the client secret, or - for standard input. Without it, the command asks for the secret.",
)

_verified_by = click.option(
    "--verified-by",
    type=click.Choice(["claim", "domain"]),
    help=(
        "What proves an address of the domains: the claim email_verified, or the domain alone, for a provider that"
        " gives every address itself and sends no such claim, such as Entra ID. By default, the claim."
    ),
)
_scopes = click.option(
    "--scopes",
    metavar="TEXT",
    help="The scopes to ask for, separated by spaces. By default, `openid email profile`.",
)
_session_hours = click.option(
    "--session-hours",
    type=click.IntRange(1, 168),
    metavar="HOURS",
    help="How long a session lasts if the provider is required: 1 to 168 hours, by default 24.",
)
_keys_days = click.option(
    "--keys-days",
    type=click.IntRange(1, 90),
    metavar="DAYS",
    help="How long keys work after the last sign-in if the provider is required: 1 to 90 days, by default 30.",
)
_require_claim = click.option(
    "--require-claim",
    "required_claims",
    multiple=True,
    metavar="NAME=VALUE",
    help=(
        "A claim that id tokens must have, such as `hd=acme.com`. Several values of a name are alternatives."
        " Repeatable."
    ),
)


def common_options(command: "Callable[..., Any]") -> "Callable[..., Any]":
    """The options that `add` and `set` share."""
    for option in (_require_claim, _keys_days, _session_hours, _scopes, _verified_by):
        command = option(command)
    return command


def given(
    *, scopes: str | None = None, required_claims: "Iterable[str]" = (), **more: Any
) -> dict[str, Any]:
    """The settings that an option has set, by the names of IdentityProvider. Raises UsageError."""
    from larder.sso.models import VerifiedBy

    values = {name: value for name, value in more.items() if value is not None}
    if "verified_by" in values:
        values["verified_by"] = VerifiedBy(values["verified_by"])
    if scopes is not None:
        values["scopes"] = tuple(scopes.split())
    if claims := _claims(required_claims):
        values["required_claims"] = claims
    return values


def _claims(texts: "Iterable[str]") -> dict[str, tuple[str, ...]]:
    claims: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if not name or not value:
            raise click.UsageError(f"--require-claim must be NAME=VALUE, not {text!r}")
        claims[name] = (*claims.get(name, ()), value)
    return claims


def claims_of_issuer(issuer: str, domains: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """What tokens of the issuer must have by default.

    Anyone can have a Google account with an address of a company. Only accounts of its Workspace have `hd`.
    """
    from larder.sso.discovery import GOOGLE

    return {"hd": domains} if issuer == GOOGLE and domains else {}


def read_secret(file: Any) -> str:
    """The client secret, from a file or by a question that does not show it. Raises ClickException."""
    asked = file is None
    text = click.prompt("Client secret", hide_input=True, err=True) if asked else file.read()
    secret = str(text).strip()
    if not secret or not secret.isascii() or not secret.isprintable() or len(secret) > 2048:
        raise click.ClickException(
            "the client secret must be one line of 1 to 2048 ASCII characters"
        )
    return secret


def redirect_uri(provider_id: str) -> str:
    """The address that the provider has to allow."""
    from larder.sso import authorization

    return authorization.redirect_uri(provider_id, settings().base_url)


def addresses(endpoints: "Endpoints") -> Record:
    """What is pinned, for a table."""
    return {
        "authorization": endpoints.authorization,
        "token": endpoints.token,
        "keys": endpoints.jwks,
        "userinfo": endpoints.userinfo,
        "sends_issuer": endpoints.sends_issuer,
        "authentication": endpoints.authentication,
        "algorithms": list(endpoints.algorithms),
    }


def check_client_id(client_id: str) -> None:
    """Refuse a client id that tokens of CI jobs can have as their audience. Raises ClickException."""
    from larder.teams.teams import list_teams
    from larder.trust.rules import list_rules

    origin = settings().base_url
    if client_id.rstrip("/").lower() == origin.lower():
        raise click.ClickException(
            f"the client id must not be {origin}, which is the audience of CI jobs: create a client with another id"
        )
    for team in list_teams():
        for rule in list_rules(team.id):
            if rule.audience == client_id:
                raise click.ClickException(
                    f"the rule {rule.id} of {team.slug} has the audience {client_id}, so a token of a CI job could look"
                    " like one of this client: create a client with another id"
                )


def warn(provider: "IdentityProvider") -> None:
    """Print warnings about what the settings allow, on standard error."""
    from larder.addresses import canonical
    from larder.sso.models import VerifiedBy

    for email in listed(settings().operator_emails):
        domain = canonical(email).rpartition("@")[2]
        if domain in provider.domains:
            echo(
                f"Warning: {email} is an operator (OperatorEmails). An admin of {provider.name} can sign in as"
                " them",
                err=True,
            )
    if provider.verified_by is VerifiedBy.DOMAIN:
        echo(
            f"Warning: with --verified-by domain, a person who can set an address of"
            f" {', '.join(provider.domains) or 'the domains'} at {provider.name} can sign in as its owner. People must"
            " not be able to change their own address there",
            err=True,
        )


def warn_of_hosts(endpoints: "Endpoints") -> None:
    from larder_cli.sso.reading import private_hosts

    if settings().base_url.startswith("http://"):
        # A local cloud has its provider on the same computer.
        return
    for host in private_hosts(endpoints):
        echo(
            f"Warning: {host} has an address here that is not on the internet. Functions only connect to public"
            " addresses, so nobody could sign in",
            err=True,
        )
