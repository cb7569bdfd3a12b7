"""`larder issuers`: the issuers whose id tokens are accepted."""

from typing import TYPE_CHECKING

import click

from larder.settings import settings
from larder_cli.commands import CommandGroup, examples, json_option, table_options
from larder_cli.output import Record, print_record, print_table

if TYPE_CHECKING:
    from larder.issuers.models import Issuer


def _record(issuer: "Issuer") -> Record:
    return {
        "url": issuer.url,
        "added": issuer.is_added,
        "jwks_uri": issuer.jwks_uri,
        "keys": len(issuer.keys),
        "fetched_at": issuer.fetched_at,
    }


@click.group(
    cls=CommandGroup,
    epilog=examples(
        "larder issuers add https://gitlab.acme.example",
        "larder issuers list",
        "larder issuers remove https://gitlab.acme.example",
    ),
)
def issuers() -> None:
    """Manage the issuers of id tokens of CI jobs.

    The option TrustedIssuers accepts those of the hosted CIs.
    """


@issuers.command("add", epilog=examples("larder issuers add https://gitlab.acme.example"))
@click.argument("url", metavar="URL")
@click.option(
    "--jwks-uri",
    metavar="URL",
    help="The address of its keys. By default, the issuer's own configuration names it, on the same host.",
)
@json_option
def add(url: str, jwks_uri: str | None, as_json: bool) -> None:
    """Accept the issuer URL, exactly as the claim iss of its tokens."""
    from larder.issuers.service import add_issuer

    added = add_issuer(url, jwks_uri, origin=settings().base_url)
    print_record(_record(added), as_json=as_json)


@issuers.command("list", epilog=examples("larder issuers list"))
@table_options
def list_(as_json: bool) -> None:
    """List the issuers, and when their keys were fetched.

    These are the issuers that rules name or that were added.
    """
    from larder.issuers.service import list_issuers

    print_table(
        [_record(issuer) for issuer in list_issuers()],
        ("url", "added", "jwks_uri", "keys", "fetched_at"),
        empty="no rule names an issuer, and none was added",
        as_json=as_json,
    )


@issuers.command("remove", epilog=examples("larder issuers remove https://gitlab.acme.example"))
@click.argument("url", metavar="URL")
@json_option
def remove(url: str, as_json: bool) -> None:
    """No longer accept the issuer URL. One of TrustedIssuers is still accepted."""
    from larder.issuers.service import remove_issuer

    if not remove_issuer(url):
        raise click.ClickException(f"{url} was not added: `larder issuers list` lists the issuers")
    print_record({"url": url, "removed": True}, as_json=as_json)
